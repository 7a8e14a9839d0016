import GattherdModel

/// The devices of a gateway as the arrays of `gattherd.report`.
struct DeviceParameters {
    /// The most devices in a report.
    private static let most = 10_000

    let parameters: [PostgresParameter]

    /// NULL for each array: the centre keeps what it has.
    static let unchanged: [PostgresParameter] =
        Array(repeating: .noArray(of: .text), count: 4) + Array(repeating: .noArray(of: .integer), count: 2)

    init(_ devices: [SeenDevice]) {
        var texts = Array(repeating: PostgresArray(.text), count: 4)
        var times = Array(repeating: PostgresArray(.integer), count: 2)
        for device in devices.prefix(Self.most) {
            let record = device.record
            let words: [String?] = [record.device, record.address, record.name, record.profiles.joined(separator: ",")]
            for (index, word) in words.enumerated() { texts[index].append(word) }
            for (index, time) in [device.first, device.last].enumerated() {
                times[index].append(BatchParameters.time(time))
            }
        }
        parameters = (texts + times).map { .array($0) }
    }
}
