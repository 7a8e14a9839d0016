package import GattherdLog
import GattherdMQTT
import GattherdMachines
import GattherdModel
import GattherdSync

/// The newest state of the output, readable on any thread.
final class SparkplugBoard: Sendable {
    /// The state, to be watched.
    let states = LatestValue(OutputStatus.State.idle)
    private let current: Locked<OutputStatus>
    private let waiting = Locked(WaitingTime())

    init(_ options: SparkplugOptions) {
        let scheme = options.tls == nil ? "mqtt" : "mqtts"
        let host = options.host.contains(":") ? "[\(options.host)]" : options.host
        let target = "\(scheme)://\(host):\(options.port)/\(options.topics.ofNode)/\(options.node)"
        current = Locked(OutputStatus(target: target))
    }

    var status: OutputStatus { current.withLock { $0 } }

    /// Publishes the machine's state and its last fault.
    func show(_ machine: borrowing SparkplugMachine, _ logger: SparkplugLogger, at now: Duration) {
        let state = machine.state.ofOutput
        let (progress, nextTry) = (machine.progress, machine.nextTry)
        let isWaitingForHost = machine.state == .waitingForHost
        let (problem, errors) = (logger.problem, logger.counters.failures.value)
        let skipped = logger.counters.skipped.value
        let waiting = waiting.withLock { $0.update(head: progress.head, cursor: progress.cursor, at: now) }
        current.withLock { status in
            status.state = state
            status.cursor = progress.cursor
            status.backlog = progress.backlog
            status.delivered = progress.delivered
            status.problem = isWaitingForHost ? "waiting for the primary host to be online" : problem
            status.errors = errors
            status.skipped = skipped
            status.nextTry = nextTry.map { Timestamp.now.advanced(by: $0 - now) }
            status.waitingSince = waiting.map { Timestamp.now.advanced(by: .zero - $0) }
        }
        if states.state != state { states.set(state) }
    }
}

extension SparkplugMachine.State {
    fileprivate var ofOutput: OutputStatus.State {
        switch self {
        case .idle: .idle
        case .connecting, .backingOff(nil): .connecting
        case .waitingForHost, .backingOff: .waiting
        case .online: .connected
        case .stopping: .stopping
        case .stopped: .stopped
        }
    }
}

extension Timestamp {
    /// The time of day.
    static var now: Timestamp { Timestamp(microseconds: WallClock.microseconds) }
}

/// The counters of the output.
package struct SparkplugCounters: Sendable {
    package let messages = Counter("sparkplug_messages_published_total", "Published Sparkplug messages")
    package let births = Counter("sparkplug_births_total", "Births of the edge node after a connection")
    package let rebirthRequests = Counter("sparkplug_rebirth_requests_total", "Rebirth requests of hosts")
    package let rebirths = Counter("sparkplug_rebirths_total", "Births that hosts asked for")
    package let historical = Counter("sparkplug_historical_values_total", "Values published as historical")
    package let refused = Counter("sparkplug_messages_refused_total", "Messages that could not be written")
    package let skipped = Counter("sparkplug_values_skipped_total", "Values in messages that could not be written")
    package let failures = Counter("sparkplug_connect_failures_total", "Connections that failed or were lost")
    package let commandsIgnored = Counter(
        "sparkplug_commands_ignored_total",
        "Commands that were invalid, not allowed or too many at once"
    )

    /// All counters, for the metrics.
    package var all: [Counter] {
        [
            messages, births, rebirthRequests, rebirths, historical, refused, skipped, failures,
            commandsIgnored,
        ]
    }
}

/// Logs, counts and records events, and keeps the current problem.
final class SparkplugLogger: Sendable {
    let counters: SparkplugCounters
    private let log: Log
    private let record: SparkplugDelivery.EventHandler
    private let options: SparkplugOptions
    private let current = Locked<String?>(nil)
    private let skips = Locked(SkipReports<(topic: String, error: String)>())
    private let journalFailedAt = Locked<SuspendingClock.Instant?>(nil)
    private let gaps = Locked(GapReports())

    init(
        _ options: SparkplugOptions,
        _ counters: SparkplugCounters,
        _ log: Log,
        _ record: @escaping SparkplugDelivery.EventHandler
    ) {
        self.options = options
        self.counters = counters
        self.log = log
        self.record = record
    }

    /// The current fault of the broker connection.
    var problem: String? { current.withLock { $0 } }

    func log(_ report: SparkplugMachine.Report) {
        switch report {
        case .waitingForHost:
            recordHost("waiting_for_host")
            log(.notice, "waiting for the primary host", [.init("sparkplug.host", options.primaryHost ?? "")])
        case .born:
            counters.births.add()
            current.withLock { $0 = nil }
            let place = "\(options.host):\(options.port)"
            record(["output": .text(options.name), "state": .text("connected"), "at": .text(place)])
            let fields = [LogField("mqtt.host", options.host), LogField("mqtt.port", options.port)]
            log(.notice, "the edge node is online", fields)
        case .hostIsOffline:
            recordHost("host_offline")
            log(.notice, "the primary host is offline", [.init("sparkplug.host", options.primaryHost ?? "")])
        case .disconnected(let fault, let delay): disconnected(fault, retryAfter: delay)
        case .rebirthRequested:
            counters.rebirthRequests.add()
            log(.debug, "a host requests a rebirth")
        case .bornAgain: counters.rebirths.add()
        case .missing(let gap): missing(gap)
        case .ignored(let topic, let reason):
            counters.commandsIgnored.add()
            let fields = [LogField("mqtt.topic", topic.cut(toBytes: 200)), LogField("reason", reason)]
            log(.warning, "a Sparkplug command is ignored", fields)
        }
    }

    private func recordHost(_ state: String) {
        let host = options.primaryHost.map { SampleValue.text($0) }
        record(["output": .text(options.name), "state": .text(state), "host": host])
    }

    private func disconnected(_ fault: BrokerFault, retryAfter delay: Duration) {
        counters.failures.add()
        let isNew = current.withLock { current in
            defer { current = fault.detail }
            return current != fault.detail
        }
        if isNew {
            let (state, error) = (fault.kind.rawValue, fault.detail)
            record(["output": .text(options.name), "state": .text(state), "error": .text(error)])
        }
        let level: LogLevel = !isNew ? .debug : fault.needsConfigurationChange ? .error : .warning
        log(level, "the edge node is offline", [.init("mqtt.error", fault.detail), .init("retry.after", delay)])
    }

    private func missing(_ found: JournalGap) {
        if let gap = gaps.withLock({ $0.add(found, at: SuspendingClock.now) }) { report(gap) }
    }

    /// Reports skipped values, and a gap that exceeded the report limit, if they are due; if `isLast`, they are.
    ///
    /// Must be called repeatedly, because no further skip or gap may follow that would report them.
    func reportDue(isLast: Bool = false) {
        let now = SuspendingClock.now
        if let gap = gaps.withLock({ $0.due(at: now, isLast: isLast) }) { report(gap) }
        guard let skips = skips.withLock({ $0.due(at: now, isLast: isLast) }) else { return }
        reportSkips(skips.count, skips.subject.topic, skips.subject.error)
    }

    private func report(_ gap: JournalGap) {
        record([
            "output": .text(options.name), "state": .text("gap"), "after": .integer(gap.after),
            "through": .integer(gap.through), "reason": .text(gap.reason),
        ])
        let fields = [
            LogField("after", gap.after), LogField("through", gap.through), LogField("reason", gap.reason),
        ]
        log(.warning, "values are not published, because history does not have them any more", fields)
    }

    func journalFailed(_ operation: SparkplugMachine.Operation, _ fault: StoreFault) {
        let now = SuspendingClock.now
        let mayLog = journalFailedAt.withLock { last in
            if let last, now < last + GapReports.period { return false }
            last = now
            return true
        }
        guard mayLog else { return }
        let fields = [LogField("log.operation", operation.rawValue), LogField("log.error", fault.detail)]
        log(.warning, "the journal cannot be read or saved; retrying", fields)
    }

    func refusedSubscription(_ filter: String) {
        let advice = "allow it in the broker's access list; commands and the host's state cannot be received"
        log(.error, "the broker refuses a subscription", [.init("mqtt.topic", filter), .init("advice", advice)])
    }

    /// Records that a message could not be written, so that the broker never gets its values.
    func unpublished(_ message: SparkplugMessage, _ error: MQTTRefusal) {
        counters.refused.add()
        let values = message.isData ? message.payload.metrics.count : 0
        counters.skipped.add(UInt64(values))
        skips.withLock { $0.add(values, (message.topic, "\(error)"), isPreferred: values > 0) }
    }

    private func reportSkips(_ count: Int64, _ topic: String, _ error: String) {
        record([
            "output": .text(options.name), "state": .text("skipped"), "count": .integer(count), "topic": .text(topic),
            "error": .text(error),
        ])
        let fields = [LogField("mqtt.topic", topic), LogField("skipped", count), LogField("mqtt.error", error)]
        log(.error, "Sparkplug messages cannot be published; their values are skipped", fields)
    }

    func controlFailed(_ request: ControlRequest, _ error: ControlError) {
        let fields = [
            LogField("device", request.device), LogField("control", request.control), LogField("error", error),
        ]
        log(.warning, "a Sparkplug command cannot be carried out", fields)
    }

    func sequenceNotSaved(_ path: String) {
        log(.warning, "bdSeq cannot be saved; it may repeat after a restart", [.init("path", path)])
    }
}
