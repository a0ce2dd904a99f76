"""What must be shown before an environment is published, and the judges of what was reported. Pure.

`programs/` runs inside the built environment; it imports TensorFlow and nothing of ours.
"""
