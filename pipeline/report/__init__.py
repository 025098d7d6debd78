"""What people look at: a page that needs no network, plots for documents, tables for others."""
