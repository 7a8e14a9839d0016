// HeartRate
