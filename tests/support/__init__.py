"""What tests share: real repositories, projects, the command line, golden outputs."""
