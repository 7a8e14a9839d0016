/// The conversion of summaries into the unit in which Home Assistant keeps the statistics of an entity.
///
/// People may choose another unit for an entity, and Home Assistant chooses one itself where people use US customary
/// units. Only linear conversions exist, so that the mean of converted values is the converted mean.
struct StatisticsUnit: Hashable {
    /// A unit of a quantity: `value · factor + offset` is the value in the quantity's first unit.
    private struct Scale: Hashable {
        let quantity: String
        let factor: Double
        var offset = 0.0
    }

    private let source: Scale
    private let target: Scale

    /// Creates a conversion; `nil` if there is none between the units.
    init?(from source: String?, to target: String?) {
        let (source, target) = (source?.withMicroSign, target?.withMicroSign)
        if source == target {
            let same = Scale(quantity: "", factor: 1)
            (self.source, self.target) = (same, same)
            return
        }
        guard let source, let target, let from = Self.scales[source], let to = Self.scales[target],
            from.quantity == to.quantity
        else { return nil }
        (self.source, self.target) = (from, to)
    }

    func convert(_ value: Double) -> Double {
        guard source != target else { return value }
        return (value * source.factor + source.offset - target.offset) / target.factor
    }

    private static let scales: [String: Scale] = {
        let factors: [String: [String: Double]] = [
            "length": [
                "m": 1, "mm": 0.001, "cm": 0.01, "km": 1000, "in": 0.0254, "ft": 0.3048, "yd": 0.9144, "mi": 1609.344,
            ],
            "speed": [
                "m/s": 1, "mm/s": 0.001, "km/h": 1 / 3.6, "mph": 0.44704, "ft/s": 0.3048, "in/s": 0.0254,
                "kn": 1852.0 / 3600,
            ],
            "mass": [
                "kg": 1, "g": 0.001, "mg": 1e-6, "lb": 0.453_592_37, "oz": 0.028_349_523_125, "st": 6.350_293_18,
            ],
            "pressure": [
                "Pa": 1, "hPa": 100, "mbar": 100, "cbar": 1000, "kPa": 1000, "bar": 100_000, "psi": 6894.757_293_168,
                "mmHg": 133.322_387_415, "inHg": 3386.388_640_341,
            ],
            "duration": ["s": 1, "ms": 0.001, "min": 60, "h": 3600, "d": 86_400],
            "voltage": ["V": 1, "mV": 0.001],
            "current": ["A": 1, "mA": 0.001],
            "power": ["W": 1, "mW": 0.001, "kW": 1000, "MW": 1_000_000],
        ]
        var scales = [
            "°C": Scale(quantity: "temperature", factor: 1),
            "°F": Scale(quantity: "temperature", factor: 5.0 / 9, offset: -160.0 / 9),
            "K": Scale(quantity: "temperature", factor: 1, offset: -273.15),
        ]
        for (quantity, units) in factors {
            for (unit, factor) in units { scales[unit] = Scale(quantity: quantity, factor: factor) }
        }
        return scales
    }()
}

extension String {
    /// The unit with U+00B5 for micro, as profiles have it.
    ///
    /// Newer versions of Home Assistant write units with the Greek letter U+03BC, also those that MQTT sent otherwise.
    fileprivate var withMicroSign: String { replacing("\u{3BC}", with: "\u{B5}") }
}
