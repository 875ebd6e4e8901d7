"""Pictures of fabrics: grouping of switches, layout, and output as SVG, HTML or PNG."""
