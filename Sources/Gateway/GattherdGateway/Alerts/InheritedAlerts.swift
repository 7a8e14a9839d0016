import GattherdHTTP
import GattherdHistory
import GattherdMachines
import GattherdModel

/// The alerts that an earlier run left raised, and the values that it stored last of their devices.
///
/// The values show which of several series were outside: the alert stays raised until all of them are inside.
struct InheritedAlerts: Sendable {
    /// The maximum number of alerts that are read.
    private static let limit = 10_000
    /// The time by which an alert may be raised late.
    private static let slack = Duration.seconds(60)

    var alerts: [ActiveAlert] = []
    /// The values by device.
    var values: [String: [AlertMachine.Event]] = [:]
    /// The addresses of the peripherals that were heard last, by device.
    var addresses: [String: String] = [:]

    init() {}

    /// Reads the alerts from history, which may block; none if it cannot be read.
    ///
    /// - Parameters:
    ///   - rules: The rules of the configuration.
    ///   - path: The database.
    init(_ rules: [AlertRule], from path: String) {
        guard let reader = try? HistoryReader(path: path),
            let events = try? reader.raisedAlerts(newest: Self.limit)
        else { return }
        let records = ((try? reader.deviceRecords()) ?? []).map { ($0.record.device, $0.record.address) }
        addresses = Dictionary(records) { first, _ in first }
        alerts = ActiveAlert.raised(after: events).map { alert in
            var alert = alert
            // Events of earlier versions have no address.
            if alert.address.isEmpty { alert.address = addresses[alert.device] ?? "" }
            return alert
        }
        for (device, start) in Self.starts(of: alerts, rules) {
            let rows = (try? reader.latest(device: device)) ?? []
            values[device] = rows.filter { $0.time >= start }.compactMap { AlertMachine.Event($0) }
        }
    }

    /// The times by device since which a value may have been outside: a series that has left the device has none.
    private static func starts(of alerts: [ActiveAlert], _ rules: [AlertRule]) -> [String: Timestamp] {
        var starts: [String: Timestamp] = [:]
        for alert in alerts {
            guard let rule = rules.first(where: { $0.name == alert.alert }), rule.concerns(alert.device),
                let raised = Timestamp(rfc3339: alert.since.utf8)
            else { continue }
            let start = raised.advanced(by: .zero - rule.holding - slack)
            starts[alert.device] = min(start, starts[alert.device] ?? start)
        }
        return starts
    }
}

extension AlertMachine.Event {
    /// Creates the event of a stored row; `nil` if its value is not a finite number.
    fileprivate init?(_ row: HistoryRow) {
        guard let value = row.value.number, value.isFinite else { return nil }
        let series = row.series
        let metric = MetricDescriptor(name: series.metric, unit: series.unit)
        self = .stored(value, metric, stream: series.stream, device: series.device)
    }
}

extension AlertMachine.LastValue {
    /// Creates the last value of a stream's metric; `nil` if it is not a finite number.
    fileprivate init?(_ value: SampleValue, _ metric: MetricDescriptor, of stream: StreamDefinition) {
        guard let number = value.number, number.isFinite else { return nil }
        self.init(number, metric, stream: stream.stream, device: stream.device)
    }
}

extension LiveStatus {
    /// The newest values, for rules of alerts that are new or changed.
    var newestAlertValues: [AlertMachine.LastValue] {
        newestValues.compactMap { AlertMachine.LastValue($0.value, $0.metric, of: $0.stream) }
    }
}

extension ActiveAlert {
    /// The alerts that are raised after these events, in order.
    static func raised(after events: [LifecycleEvent]) -> [ActiveAlert] {
        var active: [AlertMachine.Key: ActiveAlert] = [:]
        for event in events {
            guard let device = event.device, let members = AlertEvent(event.detail) else { continue }
            let key = AlertMachine.Key(alert: members.alert, device: device)
            active[key] = members.isRaised ? ActiveAlert(members, of: device, since: event.time) : nil
        }
        return Array(active.values)
    }

    private init(_ event: AlertEvent, of device: String, since time: Timestamp) {
        self.init(
            alert: event.alert,
            device: device,
            address: event.address,
            since: time.rfc3339,
            detail: event.reason
        )
    }
}

/// The members of an event of the kind `alert`.
private struct AlertEvent {
    var alert = ""
    var isRaised = false
    var reason = ""
    /// The peripheral's address; empty in an event of an earlier version.
    var address = ""

    init?(_ json: String) {
        guard case .object(let members)? = try? JSONReader.value(of: Array(json.utf8)) else { return nil }
        for case (let name, .string(let text)) in members.map({ ($0.name, $0.value) }) {
            switch name {
            case "alert": alert = text
            case "state": isRaised = text == "raised"
            case "detail": reason = text
            case "address": address = text
            default: break
            }
        }
        guard !alert.isEmpty else { return nil }
    }
}
