"""Generated listings and the site map (spec `cli` §11)."""
