"""The main job as a program: a trained sentence encoder, compiled for this CPU and checked (`python -m tilewright.demo`)."""
