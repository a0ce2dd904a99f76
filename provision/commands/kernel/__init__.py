"""`provision kernel`: let Jupyter start notebooks in an environment, in an own venv, or in the site's container."""
