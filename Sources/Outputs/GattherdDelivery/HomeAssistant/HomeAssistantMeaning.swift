import GattherdModel

/// The device class, state class, precision and icon of a number.
///
/// Home Assistant rejects a class with a wrong unit, and its recorder a state class that does not fit the class.
struct HomeAssistantMeaning: Hashable {
    /// The device class; `nil` if none fits.
    let deviceClass: String?
    let stateClass: String
    /// The decimals that people want to see; `nil` for all.
    let precision: Int?
    /// The icon; `nil` if the device class has one.
    let icon: String?

    init(of metric: MetricDescriptor) {
        let isCounter = metric.kind == .counter
        let found = Self.deviceClass(metric.name, metric.unit)
        // Home Assistant accepts energy only as a counter, and allows counters in few other classes.
        let isFitting = isCounter ? Self.countable.contains(found ?? "") : found != "energy"
        let deviceClass = isFitting ? found : nil
        self.deviceClass = deviceClass
        stateClass =
            isCounter ? "total_increasing" : deviceClass == "wind_direction" ? "measurement_angle" : "measurement"
        precision = Self.precision(of: metric, deviceClass)
        icon = deviceClass == nil ? HomeAssistantIcon.number(metric) : nil
    }

    private static func deviceClass(_ name: String, _ unit: String?) -> String? {
        guard let unit else { return nil }
        let words = Set(HomeAssistantWords.words(of: name))
        let found = byName.first { !words.isDisjoint(with: $0.words) && $0.units.contains(unit) }?.deviceClass
        if let found { return found }
        return byUnit[unit] == "temperature" && !words.isDisjoint(with: unconvertible) ? nil : byUnit[unit]
    }

    /// Words of values in K or °C that are not on a scale of temperatures: colors and differences.
    ///
    /// Home Assistant converts temperatures into the unit of its settings, with the offset of the scale.
    private static let unconvertible: Set<Substring> = ["color", "deviation", "difference"]

    /// The number of decimals to display: a pulse interval of 0.8125 s needs them, a noisy temperature does not.
    private static func precision(of metric: MetricDescriptor, _ deviceClass: String?) -> Int? {
        if let deviceClass, let decimals = decimals[deviceClass] { return decimals }
        return metric.unit.flatMap { decimalsByUnit[$0] }
    }

    private static let decimals = [
        "battery": 0, "humidity": 1, "moisture": 1, "temperature": 1, "carbon_dioxide": 0, "illuminance": 0,
        "signal_strength": 0, "sound_pressure": 1, "wind_speed": 1, "wind_direction": 0, "pm1": 1, "pm25": 1, "pm10": 1,
        "precipitation": 1, "irradiance": 0,
    ]

    private static let decimalsByUnit = [
        "bpm": 0, "1/min": 0, "rpm": 0, "Pa": 0, "hPa": 1, "mbar": 1, "kPa": 2, "mmHg": 1, "V": 2, "mV": 0, "A": 2,
        "mA": 0, "W": 1, "kW": 2, "kWh": 2, "Wh": 0, "kJ": 0, "kcal": 0, "km/h": 1, "m/s": 1, "km": 2, "kg": 1, "g": 0,
    ]

    /// The classes that allow sums.
    private static let countable: Set<String> = ["distance", "duration", "energy", "precipitation", "weight"]

    /// The classes that need the metric's name and the unit.
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

/// The device class of a Boolean.
enum HomeAssistantBinaryMeaning {
    /// The classes by the metric's whole name.
    private static let byName = [
        "battery_low": "battery", "low_battery": "battery", "battery_charging": "battery_charging",
        "charging": "battery_charging", "carbon_monoxide": "carbon_monoxide", "cold": "cold",
        "connectivity": "connectivity", "door": "door", "garage_door": "garage_door", "gas": "gas",
        "gas_detected": "gas", "heat": "heat", "light": "light", "lock_open": "lock", "moisture": "moisture",
        "moisture_detected": "moisture", "water": "moisture", "leak": "moisture", "motion": "motion",
        "moving": "moving", "occupancy": "occupancy", "open": "opening", "opening": "opening", "plug": "plug",
        "power": "power", "power_on": "power", "presence": "presence", "problem": "problem", "error": "problem",
        "running": "running", "smoke": "smoke", "sound": "sound", "tamper": "tamper", "vibration": "vibration",
        "window": "window",
    ]

    static func deviceClass(_ name: String) -> String? { byName[name] }
}

/// Icons for metrics without a device class.
enum HomeAssistantIcon {
    /// The icons by a word of the metric's name.
    private static let byWord: [(word: String, icon: String)] = [
        ("heart", "mdi:heart-pulse"), ("pulse", "mdi:heart-pulse"), ("saturation", "mdi:heart-pulse"),
        ("steps", "mdi:shoe-print"), ("step", "mdi:shoe-print"), ("stride", "mdi:shoe-print"),
        ("cadence", "mdi:rotate-right"), ("revolutions", "mdi:rotate-right"), ("wheel", "mdi:rotate-right"),
        ("crank", "mdi:rotate-right"), ("energy", "mdi:fire"), ("uv", "mdi:sun-wireless"),
        ("latitude", "mdi:crosshairs-gps"), ("longitude", "mdi:crosshairs-gps"), ("heading", "mdi:compass"),
        ("acceleration", "mdi:axis-arrow"), ("rotation", "mdi:rotate-3d-variant"), ("glucose", "mdi:water"),
        ("weight", "mdi:scale-bathroom"), ("fat", "mdi:human"), ("resistance", "mdi:omega"), ("level", "mdi:gauge"),
        ("contact", "mdi:hand-back-right"), ("location", "mdi:map-marker"),
    ]

    static func number(_ metric: MetricDescriptor) -> String {
        icon(metric.name) ?? (metric.kind == .counter ? "mdi:counter" : "mdi:gauge")
    }

    /// The icon of a state, a Boolean or an event.
    static func other(_ metric: MetricDescriptor) -> String {
        icon(metric.name) ?? (metric.kind == .event ? "mdi:bell-ring-outline" : "mdi:tag-outline")
    }

    private static func icon(_ name: String) -> String? {
        let words = name.split(separator: "_").map(String.init)
        return byWord.first { words.contains($0.word) }?.icon
    }
}
