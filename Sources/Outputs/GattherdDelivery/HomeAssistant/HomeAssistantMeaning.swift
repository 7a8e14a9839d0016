import GattherdModel

/// The device class and state class of a number; Home Assistant rejects a class with a wrong unit.
struct HomeAssistantMeaning: Hashable {
    /// The device class; `nil` if none fits.
    let deviceClass: String?
    let stateClass: String

    init(of metric: MetricDescriptor) {
        let isCounter = metric.kind == .counter
        let found = Self.deviceClass(metric.name, metric.unit)
        // Home Assistant accepts energy only as a counter, and allows counters in few other classes.
        let isFitting = isCounter ? Self.countable.contains(found ?? "") : found != "energy"
        deviceClass = isFitting ? found : nil
        stateClass =
            isCounter ? "total_increasing" : deviceClass == "wind_direction" ? "measurement_angle" : "measurement"
    }

    private static func deviceClass(_ name: String, _ unit: String?) -> String? {
        guard let unit else { return nil }
        let words = Set(name.split(separator: "_"))
        return byName.first { !words.isDisjoint(with: $0.words) && $0.units.contains(unit) }?.deviceClass
            ?? byUnit[unit]
    }

    /// The classes that allow sums.
    private static let countable: Set<String> = ["distance", "duration", "energy", "precipitation", "weight"]

    /// The classes that need the metric's name besides the unit.
    private static let byName: [(words: Set<Substring>, units: Set<String>, deviceClass: String)] = [
        (["battery"], ["%"], "battery"),
        (["humidity"], ["%"], "humidity"),
        (["moisture"], ["%"], "moisture"),
        (["co2"], ["ppm"], "carbon_dioxide"),
        (["co"], ["ppm"], "carbon_monoxide"),
        (["voc", "tvoc"], ["ppb", "ppm"], "volatile_organic_compounds_parts"),
        (["voc", "tvoc"], ["µg/m³"], "volatile_organic_compounds"),
        (["pm1"], ["µg/m³"], "pm1"),
        (["pm25"], ["µg/m³"], "pm25"),
        (["pm10"], ["µg/m³"], "pm10"),
        (["wind", "gust"], ["m/s", "km/h", "ft/s", "mph", "kn"], "wind_speed"),
        (["wind"], ["°"], "wind_direction"),
        (["rainfall", "rain", "precipitation"], ["mm", "cm", "in"], "precipitation"),
        (["noise", "sound"], ["dB", "dBA"], "sound_pressure"),
        (["glucose"], ["mg/dL", "mmol/L"], "blood_glucose_concentration"),
    ]

    private static let byUnit: [String: String] = [
        "°C": "temperature", "°F": "temperature", "K": "temperature",
        "Pa": "pressure", "hPa": "pressure", "kPa": "pressure", "mbar": "pressure", "bar": "pressure",
        "mmHg": "pressure", "psi": "pressure",
        "V": "voltage", "mV": "voltage", "A": "current", "mA": "current", "W": "power", "kW": "power",
        "J": "energy", "kJ": "energy", "MJ": "energy", "Wh": "energy", "kWh": "energy", "cal": "energy",
        "kcal": "energy",
        "lx": "illuminance", "W/m²": "irradiance", "dBm": "signal_strength", "Hz": "frequency", "kHz": "frequency",
        "m": "distance", "mm": "distance", "cm": "distance", "km": "distance",
        "m/s": "speed", "km/h": "speed", "mm/s": "speed",
        "kg": "weight", "g": "weight", "mg": "weight", "lb": "weight",
        "s": "duration", "ms": "duration", "min": "duration", "h": "duration", "d": "duration",
    ]
}
