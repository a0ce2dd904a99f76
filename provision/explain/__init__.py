"""What a log shows: the known failures, and the engine that finds them; `conclude` explains how they are ranked."""
