"""The kernel methods of the documents: each a map and a linear method."""
