"""`provision site`: list sites, show or check a site, and write the profile of a new site."""
