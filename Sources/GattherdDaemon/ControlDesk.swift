import GattherdBluetooth
import GattherdLog
public import GattherdModel
import GattherdSync

/// Where controls are set: one at a time for each, throttled as its profile says.
public actor ControlDesk {
    init(devices: Set<String>, central: any CentralBackend, catalogue: StreamCatalogue, log: Log) {}
    nonisolated func open(device: String, _ controls: [SessionPlan.Control]) {}
    nonisolated func close(device: String) {}
}
