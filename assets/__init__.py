"""Pictures that travel with the program: the app's icon and the interface's SVG icons."""
