"""A fabric as a picture: what is drawn as one, where it stands, and how it is written."""
