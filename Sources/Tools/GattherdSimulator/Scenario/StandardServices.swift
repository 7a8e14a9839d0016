import GattherdGATT

// The services of the built-in kinds.
extension ServiceSpec {
    /// Heart Rate Service 1.0, complete.
    static func heartRate(_ pattern: HeartRatePattern, rate: Double, isPlausible: Bool = false) -> ServiceSpec {
        var measurement = CharacteristicSpec(BluetoothUUID(0x2A37), .notify)
        measurement.source = isPlausible ? .person(pattern, rate: rate) : .heartRate(pattern)
        measurement.rate = rate
        let chest: [UInt8] = [1]
        let location = CharacteristicSpec(BluetoothUUID(0x2A38), .read, value: chest)
        var controlPoint = CharacteristicSpec(BluetoothUUID(0x2A39), .write)
        controlPoint.writing.lengths = 1...1
        controlPoint.writing.only = [1]
        controlPoint.writing.refusal = 0x80
        controlPoint.writing.outcome = .resetEnergy
        return ServiceSpec(BluetoothUUID(0x180D), [measurement, location] + (pattern.hasEnergy ? [controlPoint] : []))
    }

    /// A heart rate service with malformed measurements: empty, flags only, half of a two-byte rate.
    static func malformedHeartRate(rate: Double) -> ServiceSpec {
        var measurement = CharacteristicSpec(BluetoothUUID(0x2A37), .notify)
        measurement.source = .list([[], [0x00], [0x01, 0x48]])
        measurement.rate = rate
        return ServiceSpec(BluetoothUUID(0x180D), [measurement])
    }

    /// The Number Service of LeanDog's tutorial.
    ///
    /// With a rate it counts up.
    static func number(_ value: UInt8, rate: Double) -> ServiceSpec {
        var number = CharacteristicSpec(numberUUID("0001"), [.read, .write, .notify], value: [value])
        number.source = .counter
        number.rate = rate
        number.isLong = false
        number.writing.lengths = 1...1
        number.writing.outcome = .storeAndNotifyChange
        number.descriptors = [
            DescriptorSpec(BluetoothUUID(0x2901), value: Array("Some Number".utf8)),
            DescriptorSpec(BluetoothUUID(0x2904), value: [0x04, 0x00, 0x27, 0x00, 0x01, 0x00, 0x00]),
        ]
        return ServiceSpec(numberUUID("bfe6"), [number])
    }

    private static func numberUUID(_ digits: String) -> BluetoothUUID {
        BluetoothUUID("7a4b\(digits)-999f-4717-b63a-066e06971f59") ?? BluetoothUUID(0)
    }

    static func battery(_ level: UInt8, rate: Double = 0) -> ServiceSpec {
        var battery = CharacteristicSpec(.batteryLevel, [.read, .notify], value: [level])
        battery.rate = rate
        battery.source = rate > 0 ? .wave(octets: 1, from: 0, through: 100) : .stored
        return ServiceSpec(.batteryService, [battery])
    }

    /// Environmental Sensing 1.0 with the weather over days of this length.
    static func weather(day: Duration, rate: Double) -> ServiceSpec {
        let quantities: [(UInt16, WeatherQuantity)] = [
            (0x2A6E, .temperature), (0x2A6F, .humidity), (0x2A6D, .pressure),
        ]
        return ServiceSpec(
            BluetoothUUID(0x181A),
            quantities.map { number, quantity in
                let source = PayloadSource.weather(quantity, day: day, rate: rate)
                let first = source.payload(0, stored: [])
                var characteristic = CharacteristicSpec(BluetoothUUID(number), [.read, .notify], value: first)
                characteristic.source = source
                characteristic.rate = rate
                return characteristic
            }
        )
    }

    /// Environmental Sensing 1.0: temperature in 0.01 °C, humidity in 0.01 %, pressure in 0.1 Pa.
    static func environmental(rate: Double) -> ServiceSpec {
        let waves: [(UInt16, octets: Int, from: Int, through: Int)] = [
            (0x2A6E, 2, -500, 4500), (0x2A6F, 2, 2000, 8000), (0x2A6D, 4, 950_000, 1_050_000),
        ]
        return ServiceSpec(
            BluetoothUUID(0x181A),
            waves.map { number, octets, low, high in
                let source = PayloadSource.wave(octets: octets, from: low, through: high)
                let first = source.payload(0, stored: [])
                var characteristic = CharacteristicSpec(BluetoothUUID(number), [.read, .notify], value: first)
                characteristic.source = source
                characteristic.rate = rate
                return characteristic
            }
        )
    }

    /// Health Thermometer 1.0, which indicates.
    static func thermometer(rate: Double) -> ServiceSpec {
        var measurement = CharacteristicSpec(BluetoothUUID(0x2A1C), .indicate)
        measurement.source = .thermometer
        measurement.rate = rate
        let armpit: [UInt8] = [1]
        return ServiceSpec(
            BluetoothUUID(0x1809),
            [measurement, CharacteristicSpec(BluetoothUUID(0x2A1D), .read, value: armpit)]
        )
    }

    /// Device Information 1.1, by assigned number.
    static func information(_ texts: [UInt16: String]) -> ServiceSpec {
        ServiceSpec(
            BluetoothUUID(0x180A),
            texts.sorted { $0.key < $1.key }.map { number, text in
                CharacteristicSpec(BluetoothUUID(number), .read, value: Array(text.utf8))
            }
        )
    }
}
