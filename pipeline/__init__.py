"""What many participants' delivery logs tell together, on Spark.  Never imported by the desktop."""
