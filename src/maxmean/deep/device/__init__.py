"""The driver whose environment is a part of the compiled loop: many runs in one program."""
