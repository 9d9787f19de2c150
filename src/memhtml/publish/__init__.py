"""Pages over a store: a listing of every folder and the site map, made from index rows."""
