"""`provision spack`: set up the site's Spack, and write the environments for plain Spack."""
