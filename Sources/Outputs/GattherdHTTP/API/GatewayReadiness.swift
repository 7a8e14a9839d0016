import GattherdModel

/// The result of the readiness check: adapter, history and broker.
struct GatewayReadiness {
    /// The parts and their problems; `nil` for a part that is good.
    private var checks: [(name: String, problem: String?)]

    init(_ status: DaemonStatus) {
        let isOn = status.adapters.contains { $0.powered }
        checks = [
            ("bluetooth", isOn ? nil : status.adapters.isEmpty ? "no adapter, or no bluetoothd" : "no adapter is on"),
            ("history", status.history.error),
        ]
        if let delivery = status.delivery {
            checks.append(("broker", delivery.isConnected ? nil : delivery.error ?? delivery.state))
        }
    }

    var isReady: Bool { checks.allSatisfy { $0.problem == nil } }

    /// The JSON `{"ready":…,"checks":{…}}`, with `ok` for each part that is good.
    var json: [UInt8] {
        JSONWriter.bytes { writer in
            writer.beginObject()
            writer.key("ready")
            writer.boolean(isReady)
            writer.key("checks")
            writer.beginObject()
            for check in checks {
                writer.key(check.name)
                writer.string(check.problem ?? "ok")
            }
            writer.endObject()
            writer.endObject()
        }
    }
}
