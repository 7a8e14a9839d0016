public import GattherdGATT

/// Something that people may write.
public struct Control: Sendable {
    let name: String
    let characteristic: BluetoothUUID
    let service: BluetoothUUID?
    let format: ControlFormat
    let unit: String?
    let isAcknowledged: Bool
    let throttle: Duration?
    let echo: String?

    /// - Parameters:
    ///   - name: `snake_case`.
    ///   - characteristic: What is written.
    ///   - service: The service that it must be part of; `nil` for any of the profile's.
    ///   - format: What values it takes, and their octets.
    ///   - unit: The unit's symbol.
    ///   - isAcknowledged: Write with response.
    ///   - throttle: The shortest time between two writes; of the values set meanwhile the last one counts.
    ///   - echo: The stream whose readings show what was written.
    public init(
        _ name: String,
        _ characteristic: BluetoothUUID,
        in service: BluetoothUUID? = nil,
        takes format: ControlFormat,
        unit: String? = nil,
        isAcknowledged: Bool = true,
        throttle: Duration? = nil,
        echo: String? = nil
    ) {
        self.name = name
        self.characteristic = characteristic
        self.service = service
        self.format = format
        self.unit = unit
        self.isAcknowledged = isAcknowledged
        self.throttle = throttle
        self.echo = echo
    }
}
