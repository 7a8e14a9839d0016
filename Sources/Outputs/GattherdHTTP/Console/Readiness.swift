import GattherdModel

/// Whether the gateway can do its work.
struct Readiness {
    /// What was looked at, and what is wrong with it; `nil` when it is good.
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

    /// `{"ready":…,"checks":{…}}`, where what is good is `ok`.
    var json: [UInt8] {
        JSONWriter.octets { writer in
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
