"""Where arrays live and how work is cut."""
