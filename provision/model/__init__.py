"""The nouns that no profile spells: facts, locks, requests, plans, layouts, jobs' requests, events. Frozen; pure."""
