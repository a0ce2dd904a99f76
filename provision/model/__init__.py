"""The values that are not in a profile: facts, locks, requests, plans, layouts, batch requests, events. Frozen; pure."""
