import GattherdModel

/// The edge node as hosts see it: births, deaths and values with their sequence numbers.
///
/// A value without I/O; the time of publishing is passed in. It returns messages in the order in which they are to be
/// sent, and nothing between deaths and births of the node.
struct EdgeNode: Sendable {
    static let rebirth = "Node Control/Rebirth"

    let topics: SparkplugTopics
    private let version: String
    /// True to leave out values that equal the previous ones.
    private let isByException: Bool
    private var permissions: ControlPermissions
    private var devices: [String: SparkplugDevice] = [:]
    /// The maximum number of removed devices in memory while the broker is unreachable, and of devices that only
    /// readings name.
    private static let mostFormer = 1000

    /// The removed devices whose readings may still be published or repeated, with the `seq` of each last reading.
    private(set) var removed: [String: Int64] = [:]
    private var aliases = AliasPool()
    private let nodeAliases: (bdSeq: UInt64, version: UInt64, online: UInt64)
    /// The number of the next message; NBIRTH has 0.
    private var seq: UInt8 = 0
    private(set) var bdSeq: UInt8 = 0
    private(set) var isBorn = false
    /// The maximum size of a packet that the broker accepts, in bytes.
    private var maximumPacket = Int.max
    /// The number of bytes in the packet of a DDATA, besides the topic and the metrics.
    private static let dataOverhead = 32
    /// The number of devices online, as last published.
    private var shownOnline = 0

    init(topics: SparkplugTopics, version: String, isByException: Bool, permissions: ControlPermissions) {
        self.topics = topics
        self.version = version
        self.isByException = isByException
        self.permissions = permissions
        nodeAliases = (aliases.next(), aliases.next(), aliases.next())
    }

    private var onlineCount: Int { devices.values.count(where: \.isOnlineAndKnown) }

    // MARK: - Births and deaths of the node

    /// Returns NDEATH, which is the will of the connection that starts with it.
    static func death(_ topics: SparkplugTopics, bdSeq: UInt8, at time: Timestamp) -> SparkplugMessage {
        let metric = Self.metric("bdSeq", .int64, .long(UInt64(bdSeq)), at: time)
        let payload = SparkplugPayload(timestamp: time.milliseconds, metrics: [metric])
        return SparkplugMessage(topic: topics.nodeDeath, payload: payload, qos: 1)
    }

    /// Starts a connection with the will of `bdSeq`.
    mutating func connect(bdSeq: UInt8) {
        self.bdSeq = bdSeq
        end()
    }

    /// Limits the size of DDATA to the packets that the broker accepts, in bytes.
    mutating func limitPackets(to bytes: Int) {
        maximumPacket = bytes
    }

    /// Returns NBIRTH and the births of all devices that are online.
    mutating func birth(at time: Timestamp) -> [SparkplugMessage] {
        end()
        isBorn = true
        shownOnline = onlineCount
        var bdSeq = Self.metric("bdSeq", .int64, .long(UInt64(bdSeq)), at: time)
        var version = Self.metric("Properties/Version", .string, .string(version), at: time)
        var online = Self.metric("Gateway/Devices Online", .int64, .long(UInt64(shownOnline)), at: time)
        (bdSeq.alias, version.alias, online.alias) = nodeAliases
        let rebirth = Self.metric(Self.rebirth, .boolean, .boolean(false), at: time)
        let birth = message(topics.nodeBirth, [bdSeq, rebirth, version, online], at: time)
        return [birth] + devices.keys.sorted().flatMap { births(of: $0, at: time) }
    }

    private static func metric(
        _ name: String,
        _ datatype: SparkplugDatatype,
        _ value: SparkplugMetric.Value,
        at time: Timestamp
    ) -> SparkplugMetric {
        SparkplugMetric(name: name, timestamp: time.milliseconds, datatype: datatype.rawValue, value: value)
    }

    /// Ends all devices together with the node; returns NDEATH.
    mutating func death(at time: Timestamp) -> SparkplugMessage {
        end()
        return Self.death(topics, bdSeq: bdSeq, at: time)
    }

    private mutating func end() {
        isBorn = false
        seq = 0
        for name in devices.keys { devices[name]?.die() }
    }

    private mutating func message(_ topic: String, _ metrics: [SparkplugMetric], at time: Timestamp) -> SparkplugMessage
    {
        defer { seq &+= 1 }
        return SparkplugMessage(
            topic: topic,
            payload: SparkplugPayload(timestamp: time.milliseconds, metrics: metrics, seq: UInt64(seq))
        )
    }

    /// Returns DDATA with these metrics of a device; several if one would be too long.
    private mutating func data(
        of name: String,
        _ metrics: [SparkplugMetric],
        at time: Timestamp
    ) -> [SparkplugMessage] {
        let topic = topics.deviceData(name)
        var data = DeviceDataMessages(limit: maximumPacket - topic.utf8.count - Self.dataOverhead)
        data.append(metrics)
        return data.messages.map { message(topic, $0, at: time) }
    }

    // MARK: - Devices

    /// Applies a description; returns DBIRTH if it differs from the last birth.
    mutating func describe(_ description: DeviceDescription, at time: Timestamp) -> [SparkplugMessage] {
        var device = devices[description.device] ?? SparkplugDevice(name: description.device)
        device.describe(description, permissions, &aliases)
        devices[description.device] = device
        return births(of: description.device, at: time) + onlineUpdate(at: time)
    }

    /// Applies new permissions; returns the births of devices whose controls changed.
    mutating func allow(_ permissions: ControlPermissions, at time: Timestamp) -> [SparkplugMessage] {
        self.permissions = permissions
        for name in devices.keys { devices[name]?.allow(permissions, &aliases) }
        return devices.keys.sorted().flatMap { births(of: $0, at: time) }
    }

    /// Marks a device as online; returns its birth if it is described, after the death that is still due.
    mutating func deviceIsOnline(_ name: String, at time: Timestamp) -> [SparkplugMessage] {
        guard devices[name]?.isOnline != true else { return [] }
        // The link was lost in between, which hosts must hear of.
        let death = death(of: name, at: time)
        devices[name, default: SparkplugDevice(name: name)].isOnline = true
        return death + births(of: name, at: time) + onlineUpdate(at: time)
    }

    /// Marks a device as offline.
    ///
    /// Its death follows by ``deathIfOffline(_:at:)``, because its last values may still be on their way.
    mutating func deviceIsOffline(_ name: String, at time: Timestamp) -> [SparkplugMessage] {
        devices[name]?.isOnline = false
        return onlineUpdate(at: time)
    }

    func isOnline(_ name: String) -> Bool { devices[name]?.isOnline ?? false }
    func isBorn(_ name: String) -> Bool { devices[name]?.isBorn ?? false }

    /// Returns the death of a device that is offline.
    mutating func deathIfOffline(_ name: String, at time: Timestamp) -> [SparkplugMessage] {
        isOnline(name) ? [] : death(of: name, at: time)
    }

    /// True if the device exists, or has readings that are published.
    func contains(_ name: String) -> Bool { devices[name] != nil }

    /// Removes a device; returns its death.
    ///
    /// Its readings up to the number `last` are still published, between another birth and another death.
    mutating func remove(_ name: String, through last: Int64, at time: Timestamp) -> [SparkplugMessage] {
        let death = death(of: name, at: time)
        devices[name] = nil
        removed[name] = last
        if removed.count > Self.mostFormer, let oldest = removed.min(by: { $0.value < $1.value }) {
            removed[oldest.key] = nil
        }
        return death + onlineUpdate(at: time)
    }

    /// Ends the removals of devices whose readings are not sent again, because all up to `seq` have arrived.
    mutating func finishRemovals(through seq: Int64) {
        guard !removed.isEmpty else { return }
        removed = removed.filter { $0.value > seq }
    }

    private mutating func death(of name: String, at time: Timestamp) -> [SparkplugMessage] {
        guard isBorn, devices[name]?.isBorn == true else { return [] }
        devices[name]?.die()
        return [message(topics.deviceDeath(name), [], at: time)]
    }

    private mutating func births(of name: String, at time: Timestamp) -> [SparkplugMessage] {
        guard isBorn, var device = devices[name], device.needsBirth else { return [] }
        return [birth(of: &device, at: time)]
    }

    private mutating func birth(of device: inout SparkplugDevice, at time: Timestamp) -> SparkplugMessage {
        let metrics = device.birth(at: time)
        devices[device.name] = device
        return message(topics.deviceBirth(device.name), metrics, at: time)
    }

    /// Returns NDATA if the number of devices online has changed.
    private mutating func onlineUpdate(at time: Timestamp) -> [SparkplugMessage] {
        guard isBorn, onlineCount != shownOnline else { return [] }
        shownOnline = onlineCount
        let value = SparkplugMetric.Value.long(UInt64(shownOnline))
        let metric = SparkplugMetric(alias: nodeAliases.online, timestamp: time.milliseconds, value: value)
        return [message(topics.nodeData, [metric], at: time)]
    }
}

/// Values and commands.
extension EdgeNode {
    /// Returns the messages of readings, in their order for each device.
    ///
    /// A device that is offline is born for its values and dies after them, unless its death is due anyway.
    ///
    /// - Parameters:
    ///   - readings: The readings, in the order of the journal.
    ///   - horizon: The last number of the values that are historical, because hosts could not receive them in time.
    ///   - dying: The devices that went offline a moment ago, whose values still count as current.
    ///   - time: The time of publishing.
    /// - Returns: Births, data and deaths.
    mutating func publish(
        _ readings: [JournalReading],
        historicalThrough horizon: Int64,
        dying: Set<String>,
        at time: Timestamp
    ) -> [SparkplugMessage] {
        guard isBorn else { return [] }
        var order: [String] = []
        var groups: [String: [JournalReading]] = [:]
        for reading in readings {
            let name = reading.stream.device
            if groups[name] == nil { order.append(name) }
            groups[name, default: []].append(reading)
        }
        defer { removeFormer(except: dying) }
        return order.flatMap { name -> [SparkplugMessage] in
            let (readings, last) = (groups[name, default: []][...], removed[name] ?? -1)
            let former = readings.prefix { $0.seq <= last }
            let present = readings.dropFirst(former.count)
            let isDying = dying.contains(name)
            return publishRemoved(former, of: name, at: time)
                + publish(present, of: name, historicalThrough: horizon, isDying: isDying, at: time)
        }
    }

    /// Removes the devices that only readings name if there are too many: a backlog may have many former names.
    private mutating func removeFormer(except dying: Set<String>) {
        guard devices.count > Self.mostFormer else { return }
        let former = devices.filter { !$0.value.isDescribed && !$0.value.isOnline && !dying.contains($0.key) }.keys
        guard former.count > Self.mostFormer else { return }
        for name in former { devices[name] = nil }
    }

    /// Returns the messages of a removed device's readings, while another device that has its name is dead.
    private mutating func publishRemoved(
        _ readings: ArraySlice<JournalReading>,
        of name: String,
        at time: Timestamp
    ) -> [SparkplugMessage] {
        guard !readings.isEmpty else { return [] }
        let death = death(of: name, at: time)
        let successor = devices.removeValue(forKey: name)
        let messages = publish(readings, of: name, historicalThrough: .max, isDying: false, at: time)
        devices[name] = successor
        return death + messages + births(of: name, at: time)
    }

    private mutating func publish(
        _ readings: ArraySlice<JournalReading>,
        of name: String,
        historicalThrough horizon: Int64,
        isDying: Bool,
        at time: Timestamp
    ) -> [SparkplugMessage] {
        guard !readings.isEmpty else { return [] }
        var device = devices[name] ?? SparkplugDevice(name: name)
        for reading in readings { device.learn(reading, &aliases) }
        devices[name] = device
        var messages: [SparkplugMessage] = []
        if !device.isBorn || device.needsBirth { messages.append(birth(of: &device, at: time)) }
        let isLive = device.isOnline || isDying
        var values: [SparkplugMetric] = []
        for reading in readings {
            let isHistorical = !isLive || reading.seq <= horizon
            values += device.values(reading, isHistorical: isHistorical, isByException: isByException, at: time)
        }
        devices[name] = device
        messages += data(of: name, values, at: time)
        return messages + (isLive ? [] : death(of: name, at: time))
    }

    /// Returns the newest values as current ones, where hosts have only historical ones.
    mutating func publishOvertaken(at time: Timestamp) -> [SparkplugMessage] {
        guard isBorn else { return [] }
        var messages: [SparkplugMessage] = []
        for name in devices.keys.sorted() where devices[name]?.isBorn == true && isOnline(name) {
            guard let values = devices[name]?.overtaken() else { continue }
            messages += data(of: name, values, at: time)
        }
        return messages
    }

    /// Records that hosts have not received the current values of a device's metrics: the next ones count as new.
    mutating func valuesAreMissing(_ aliases: Set<UInt64>, of name: String) {
        devices[name]?.valuesAreMissing(aliases)
    }

    /// Returns DDATA for a control that was written.
    mutating func controlWasSet(
        _ control: String,
        of name: String,
        to value: ControlValue,
        at time: Timestamp
    ) -> [SparkplugMessage] {
        guard let metric = devices[name]?.record(value, of: control, at: time) else { return [] }
        guard isBorn, isBorn(name) else { return [] }
        return [message(topics.deviceData(name), [metric], at: time)]
    }

    /// True if a payload of NCMD asks for a rebirth.
    static func isRebirth(_ payload: SparkplugPayload) -> Bool {
        payload.metrics.contains { $0.name == rebirth && $0.value == .boolean(true) }
    }

    /// Returns the requests in a payload of DCMD, one for each metric.
    func requests(_ payload: SparkplugPayload, for name: String) -> [Result<ControlRequest, CommandError>] {
        guard let device = devices[name] else { return [.failure(.unknownDevice(name))] }
        return payload.metrics.map { metric in
            Result { () throws(CommandError) in
                let (control, value) = try device.controls.request(metric)
                return ControlRequest(device: name, control: control, value: value)
            }
        }
    }
}
