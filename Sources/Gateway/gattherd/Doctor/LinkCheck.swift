import GattherdGateway
import GattherdModel

/// Findings about the radio, from the states of the links.
struct LinkCheck {
    private let status: DaemonStatus

    init(_ status: DaemonStatus) {
        self.status = status
    }

    var findings: [DoctorFinding] { status.adapters.compactMap(full) + [stalled, silent].compactMap(\.self) }

    /// An adapter that holds no more links although devices wait.
    private func full(_ adapter: DaemonStatus.Adapter) -> DoctorFinding? {
        guard adapter.isCrowded, let slots = adapter.slots else { return nil }
        let waiting = status.devices.filter { $0.reason == LinkReason.adapterFull.rawValue }
        let names = waiting.isEmpty ? "" : ": \(Self.list(waiting))"
        let text = "\(adapter.name) holds \(adapter.links) of \(slots) links, and devices wait for a free slot\(names)"
        let remedy = "add an adapter, or let the devices take turns: bluetooth: {rotate: 5m}"
        return DoctorFinding("links", .warning, text, remedy: remedy)
    }

    /// Links that are up while bluetoothd does not answer.
    private var stalled: DoctorFinding? {
        let devices = status.devices.filter(\.isStalled)
        guard let first = devices.first else { return nil }
        let text = "no data arrives from \(Self.list(devices)): \(first.detail ?? "bluetoothd does not answer")"
        return DoctorFinding(
            "links",
            .error,
            text,
            remedy: "systemctl restart bluetooth; journalctl -u bluetooth says more"
        )
    }

    /// Devices whose last link was up without any data.
    private var silent: DoctorFinding? {
        let devices = status.devices.filter {
            $0.state == LinkState.backingOff.rawValue && $0.reason == LinkReason.silent.rawValue
        }
        guard let first = devices.first else { return nil }
        let text = "links of \(Self.list(devices)) were dead: \(first.detail ?? "no data arrived")"
        return DoctorFinding(
            "links",
            .warning,
            text,
            remedy: "gattherd why \(first.device) shows the next steps"
        )
    }

    /// Returns the first five names and the number of the others.
    static func list(_ devices: [DaemonStatus.Device]) -> String {
        let names = devices.prefix(5).map(\.device).joined(separator: ", ")
        return devices.count > 5 ? "\(names) and \(devices.count - 5) more" : names
    }
}
