"""Pictures of fabrics: grouping of switches into boxes, layout, and output as SVG, HTML or PNG."""
