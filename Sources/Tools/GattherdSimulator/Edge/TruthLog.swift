import GattherdGATT
import GattherdSync
import Glibc

/// The log of the events at the peripherals: a file with one JSON object per line.
///
/// Lines are buffered and written once for each turn of the loop.
final class TruthLog {
    private let descriptor: Int32
    private var lines: [UInt8] = []

    /// Creates or truncates the file.
    ///
    /// - Throws: ``SimulatorError`` if it cannot be written.
    init(path: String) throws(SimulatorError) {
        descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else {
            throw SimulatorError("cannot write \(path): \(SystemError.current)")
        }
    }

    deinit {
        flush()
        close(descriptor)
    }

    /// Adds an event at a link of a gateway, which is named if there are several.
    func add(_ event: TruthEvent, gateway: String?) {
        let place = gateway.map { ",\"gateway\":\"\($0)\"" } ?? ""
        lines += "{\"t\":\(WallClock.microseconds),\(Self.members(of: event))\(place)}\n".utf8
    }

    /// Writes the buffered lines.
    ///
    /// Lines that a full disk refuses are lost.
    func flush() {
        guard !lines.isEmpty else { return }
        _ = writeAll(lines, to: descriptor)
        lines.removeAll(keepingCapacity: true)
    }

    /// The JSON members of an event.
    ///
    /// Numbers, hexadecimal and fixed words need no escapes.
    private static func members(of event: TruthEvent) -> String {
        switch event {
        case .notification(let record):
            "\"event\":\"notification\",\"dev\":\"\(record.address)\",\"char\":\"\(record.characteristic)\","
                + "\"n\":\(record.number),\"hex\":\"\(Hexadecimal.text(record.payload.span))\","
                + "\"delivered\":\(record.isDelivered)"
        case .write(let address, let uuid, let value, let error):
            "\"event\":\"write\",\"dev\":\"\(address)\",\"char\":\"\(uuid)\","
                + "\"hex\":\"\(Hexadecimal.text(value.span))\",\"error\":\(error.map { "\($0)" } ?? "null")"
        case .subscribed(let address, let uuid, let isSubscribed):
            "\"event\":\"\(isSubscribed ? "subscribe" : "unsubscribe")\",\"dev\":\"\(address)\",\"char\":\"\(uuid)\""
        case .connected(let address, let adapter):
            "\"event\":\"connect\",\"dev\":\"\(address)\",\"adapter\":\"\(adapter)\""
        case .crashed: "\"event\":\"crash\""
        case .disconnected(let address, let reason):
            "\"event\":\"disconnect\",\"dev\":\"\(address)\",\"reason\":\"\(reason.rawValue)\""
        }
    }
}
