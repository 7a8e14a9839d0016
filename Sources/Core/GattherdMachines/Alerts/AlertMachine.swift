public import GattherdModel

/// The decision which alerts are raised.
///
/// A value outside of the bounds raises an alert after the rule's holding time. A value that is inside by at least the
/// hysteresis clears it. Silence raises an alert when its time is over, and the next reading clears it. A device that a
/// person disconnected is not missed. A device that another gateway owns has no alerts here.
///
/// A new rule begins with the last values. A changed rule also keeps its alert raised if one of them is outside, or if
/// the device has been silent for its new time.
public struct AlertMachine: Sendable {
    /// An alert of a device.
    public struct Key: Hashable, Sendable {
        /// The name of the rule.
        public let alert: String
        public let device: String

        public init(alert: String, device: String) {
            (self.alert, self.device) = (alert, device)
        }
    }

    public enum Event: Sendable {
        /// These alerts of an earlier run are about other peripherals than those of the devices now.
        case outdated(Set<Key>)
        /// The rules and devices from now on, and the last values of this run, for rules that are new or changed.
        ///
        /// The `readdressed` devices are other peripherals than before: their former values mean nothing.
        case configure([AlertRule], devices: [String], readdressed: Set<String> = [], values: [LastValue] = [])
        /// True if a person disconnected the device.
        case held(Bool, device: String)
        /// True if another gateway owns the device, and watches it.
        case elsewhere(Bool, device: String)
        /// The device has these streams and no others.
        case described(DeviceDescription)
        /// A reading arrived.
        case heard(device: String)
        /// A stream's metric has a new value.
        case value(Double, MetricDescriptor, stream: String, device: String)
        /// The last value that an earlier run stored of a stream's metric.
        case stored(Double, MetricDescriptor, stream: String, device: String)
        /// The peripheral has left: its late values mean nothing for another one of the device's name.
        case removed(device: String)
        /// ``AlertMachine/deadline`` has been reached.
        case tick
    }

    public enum Change: Hashable, Sendable {
        /// The alert is raised, for a reason in words for people.
        case raised(Key, reason: String)
        case cleared(Key)

        /// The alert.
        public var key: Key {
            switch self {
            case .raised(let key, _), .cleared(let key): key
            }
        }
    }

    fileprivate struct Device: Sendable {
        var watches: [Watch]
        var heard: Duration
        var isHeld = false
    }

    private var devices: [String: Device] = [:]
    /// The devices that another gateway owns; a lease may be known before its device is configured.
    private var elsewhere: Set<String> = []
    /// Alerts that an earlier run raised, for devices that are not known yet.
    private var inherited: Set<Key>

    /// - Parameter raised: The alerts that an earlier run raised.
    public init(raised: [Key] = []) {
        inherited = Set(raised)
    }

    /// True if no rule concerns the device here.
    public func ignores(_ device: String) -> Bool {
        elsewhere.contains(device) || devices[device]?.watches.isEmpty ?? true
    }

    /// Handles an event.
    ///
    /// - Parameters:
    ///   - event: The event.
    ///   - now: The monotonic time.
    /// - Returns: The alerts that are raised or cleared.
    public mutating func handle(_ event: Event, at now: Duration) -> [Change] {
        switch event {
        case .outdated(let keys):
            defer { inherited.subtract(keys) }
            return inherited.intersection(keys).map { .cleared($0) }
        case .configure(let rules, let names, let readdressed, let values):
            return configure(rules, names, values.filter { !readdressed.contains($0.device) }, readdressed, now)
        case .held(let isHeld, let device): return setHeld(isHeld, device, now)
        case .elsewhere(let isElsewhere, let device): return setOwnedElsewhere(isElsewhere, device, now)
        case .described(let description): return described(description)
        case .heard(let device): return heard(device, now)
        case .value(let value, let metric, let stream, let device):
            return record(value, metric, stream, device, now)
        case .stored(let value, let metric, let stream, let device):
            recall(value, metric, stream, device)
            return []
        case .removed(let device): return forgetValues(of: device)
        case .tick: return raiseDue(now)
        }
    }

    /// The time of the next ``Event/tick``; `nil` if nothing can become due.
    public var deadline: Duration? {
        let watched = devices.filter { !elsewhere.contains($0.key) }.values
        return watched.flatMap { device in device.watches.compactMap { Self.due($0, device) } }.min()
    }

    private mutating func configure(
        _ rules: [AlertRule],
        _ names: [String],
        _ values: [LastValue],
        _ readdressed: Set<String>,
        _ now: Duration
    ) -> [Change] {
        var changes: [Change] = []
        let known = Self.raised(devices).union(inherited)
        let values = Dictionary(grouping: values, by: \.device)
        let before = devices
        devices = [:]
        elsewhere.formIntersection(names)
        for name in names {
            let old = readdressed.contains(name) ? nil : before[name]
            let watches = rules.filter { $0.concerns(name) }.map { rule in
                old?.watches.first { $0.rule == rule } ?? watch(rule, of: name, old, values[name] ?? [], now)
            }
            devices[name] = Device(watches: watches, heard: old?.heard ?? now, isHeld: before[name]?.isHeld ?? false)
        }
        for key in known.subtracting(Self.raised(devices)) { changes.append(.cleared(key)) }
        inherited = []
        return changes + raiseDue(now)
    }

    /// Returns the watch of a rule that is new or changed.
    private func watch(
        _ rule: AlertRule,
        of device: String,
        _ old: Device?,
        _ values: [LastValue],
        _ now: Duration
    ) -> Watch {
        var watch = Watch(rule: rule, isRaised: inherits(rule, device))
        let former = old?.watches.first { $0.rule.name == rule.name }
        // Silence and values have other reasons.
        let wasRaised = former.map { $0.isRaised && $0.isSilence == watch.isSilence } ?? false
        watch.start(with: values, wasRaised: wasRaised, now)
        if wasRaised, case .silent(let limit) = rule.condition, let old, old.heard + limit <= now {
            watch.isRaised = true
        }
        return watch
    }

    private func inherits(_ rule: AlertRule, _ device: String) -> Bool {
        inherited.contains(Key(alert: rule.name, device: device)) && !elsewhere.contains(device)
    }

    private static func raised(_ devices: [String: Device]) -> Set<Key> {
        Set(
            devices.flatMap { name, device in
                device.watches.filter(\.isRaised).map { Key(alert: $0.rule.name, device: name) }
            }
        )
    }

    private mutating func setHeld(_ isHeld: Bool, _ device: String, _ now: Duration) -> [Change] {
        guard devices[device] != nil, devices[device]?.isHeld != isHeld else { return [] }
        devices[device]?.isHeld = isHeld
        return heard(device, now)
    }

    private mutating func setOwnedElsewhere(_ isElsewhere: Bool, _ device: String, _ now: Duration) -> [Change] {
        guard elsewhere.contains(device) != isElsewhere else { return [] }
        if isElsewhere { elsewhere.insert(device) } else { elsewhere.remove(device) }
        guard var state = devices[device] else { return [] }
        let cleared = Self.raised([device: state])
        state.heard = now
        state.watches = state.watches.map { Watch(rule: $0.rule, isRaised: false) }
        devices[device] = state
        return cleared.map { .cleared($0) }
    }

    private mutating func described(_ description: DeviceDescription) -> [Change] {
        guard var state = devices[description.device] else { return [] }
        var changes: [Change] = []
        for index in state.watches.indices where state.watches[index].keep(description) {
            changes.append(.cleared(Key(alert: state.watches[index].rule.name, device: description.device)))
        }
        devices[description.device] = state
        return changes
    }

    private mutating func heard(_ device: String, _ now: Duration) -> [Change] {
        guard var state = devices[device] else { return [] }
        var changes: [Change] = []
        state.heard = now
        for index in state.watches.indices where state.watches[index].isSilence && state.watches[index].isRaised {
            state.watches[index].isRaised = false
            changes.append(.cleared(Key(alert: state.watches[index].rule.name, device: device)))
        }
        devices[device] = state
        return changes
    }

    private mutating func record(
        _ value: Double,
        _ metric: MetricDescriptor,
        _ stream: String,
        _ device: String,
        _ now: Duration
    ) -> [Change] {
        guard !elsewhere.contains(device), var state = devices[device] else { return [] }
        var changes: [Change] = []
        for index in state.watches.indices where state.watches[index].rule.concerns(metric) {
            let key = Key(alert: state.watches[index].rule.name, device: device)
            if let change = state.watches[index].record(value, metric, stream, now, key) { changes.append(change) }
        }
        devices[device] = state
        return changes + raiseDue(now, only: device)
    }

    private mutating func recall(_ value: Double, _ metric: MetricDescriptor, _ stream: String, _ device: String) {
        guard var state = devices[device] else { return }
        for index in state.watches.indices where state.watches[index].rule.concerns(metric) {
            state.watches[index].recall(value, metric, stream)
        }
        devices[device] = state
    }

    private mutating func forgetValues(of device: String) -> [Change] {
        guard var state = devices[device] else { return [] }
        let raised = state.watches.filter { !$0.isSilence && $0.isRaised }
        state.watches = state.watches.map { $0.isSilence ? $0 : Watch(rule: $0.rule, isRaised: false) }
        devices[device] = state
        return raised.map { .cleared(Key(alert: $0.rule.name, device: device)) }
    }

    private mutating func raiseDue(_ now: Duration, only name: String? = nil) -> [Change] {
        var changes: [Change] = []
        for device in name.map({ [$0] }) ?? Array(devices.keys) {
            guard !elsewhere.contains(device), let state = devices[device] else { continue }
            for index in state.watches.indices {
                let watch = state.watches[index]
                guard let due = Self.due(watch, state), due <= now else { continue }
                devices[device]?.watches[index].isRaised = true
                changes.append(.raised(Key(alert: watch.rule.name, device: device), reason: watch.reason))
            }
        }
        return changes
    }

    /// Returns the time at which the alert is raised if nothing happens.
    private static func due(_ watch: Watch, _ device: Device) -> Duration? {
        guard !watch.isRaised else { return nil }
        if case .silent(let limit) = watch.rule.condition { return device.isHeld ? nil : device.heard + limit }
        return watch.outside.isEmpty ? nil : watch.outsideSince + watch.rule.holding
    }
}
