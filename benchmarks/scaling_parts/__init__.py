"""The cost model of docs/lab/scaling.md, one idea a file; ../scaling_model.py is its command."""
