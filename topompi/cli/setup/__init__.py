"""Commands about this machine and its settings: demo, doctor, env."""
