"""What the program shows outside its window: notifications, the tray, and what closing means."""
