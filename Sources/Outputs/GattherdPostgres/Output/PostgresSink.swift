package import GattherdModel
package import GattherdOutputs
import GattherdSync

/// Copies the journal to the central database, each entry exactly once.
///
/// A batch is one statement, and so one transaction: it compares the cursor, inserts the entries and moves the cursor.
package final class PostgresSink: CursorKeepingSink {
    private struct State: Sendable {
        var epoch: JournalEpoch?
        /// True if a correction may not be applied to all of its rows yet.
        private(set) var hasPendingCorrections = true
        /// The number of times that corrections had to be applied.
        private(set) var correctionRequests = 0
        var maintainedAt: SuspendingClock.Instant?
        /// The devices that the centre knows; `nil` before the first report.
        var reported: [DeviceRecord]?
        var reportedAt: SuspendingClock.Instant?
        /// The calls that failed since the start.
        var errors: Int64 = 0
        var upkeepReports = UpkeepReports()
        /// The reason why another daemon delivers instead of this one; `nil` if none does.
        var conflict: String?

        mutating func requireCorrections() {
            hasPendingCorrections = true
            correctionRequests &+= 1
        }

        /// Records that all corrections are applied, unless there was another request after this number of them.
        mutating func completeCorrections(of requests: Int) {
            if correctionRequests == requests { hasPendingCorrections = false }
        }
    }

    /// The limit of a step of a correction, and the time for steps without new entries.
    private static let correctionLimit = Duration.seconds(10)
    /// The time for the steps of corrections after one batch: so short that the batch counts as fast.
    private static let correctionTime = Duration.seconds(5)
    private static let maintenancePause = Duration.seconds(3600)
    /// The time for the steps of the retention after one batch.
    private static let maintenanceLimit = Duration.seconds(1)
    /// The shortest time between reports of the gateway's version, head, clock and devices to the centre.
    private static let reportPause = Duration.seconds(60)
    /// The limit of a report, on which no delivery depends.
    private static let reportLimit = Duration.seconds(10)
    /// The shortest time between reports while the centre does not know a device.
    private static let newDevicePause = Duration.seconds(5)
    /// The longest pause before another daemon of the same name is looked for again.
    private static let conflictPause = Duration.seconds(30)
    /// The numbers of entries, which are exact as JSON numbers, and 0 for none.
    private static let numbers: ClosedRange<Int64> = 0...1 << 53
    /// The reason of the gap in place of an entry that is left out.
    private static let refusal = "the database refused this entry; the events of the gateway have the cause"
    private static let append: String = {
        let numbers = (1...37).map { "$\($0)" }.joined(separator: ", ")
        return "SELECT gattherd.append(\(numbers))"
    }()

    private static let identity = """
        SELECT c.system_identifier || '/' || d.oid FROM pg_catalog.pg_control_system() AS c, pg_catalog.pg_database AS d
        WHERE d.datname = pg_catalog.current_database()
        """

    private static let reportStatement =
        "SELECT gattherd.report(\((1...10).map { "$\($0)" }.joined(separator: ", ")))"

    private let client: PostgresClient
    private let url: PostgresURL
    private let gateway: String
    private let version: String
    private let daemon: DaemonRun
    private let output: String
    private let writers: CentreWriters
    private let head: @Sendable () async -> Int64?
    private let devices: @Sendable () async -> [SeenDevice]?
    private let upkeepFailed: CentreUpkeep.FailureHandler
    private let state = Locked(State())

    /// - Parameters:
    ///   - client: The connection.
    ///   - url: The database, for errors.
    ///   - gateway: The gateway's name at the centre.
    ///   - version: The version of gattherd, for the table of gateways.
    ///   - daemon: The run of the daemon.
    ///   - output: The name of the output.
    ///   - writers: The outputs of this process, to which this one is added.
    ///   - upkeepFailed: Called when corrections or the retention have failed.
    ///   - devices: Returns the devices of the gateway, or `nil` if they are not known now.
    ///   - head: Returns the newest number of the journal.
    package init(
        _ client: PostgresClient,
        url: PostgresURL,
        gateway: String,
        version: String,
        daemon: DaemonRun = .current,
        output: String = "postgres",
        writers: CentreWriters = CentreWriters(),
        upkeepFailed: @escaping CentreUpkeep.FailureHandler = { _, _ in },
        devices: @escaping @Sendable () async -> [SeenDevice]? = { nil },
        head: @escaping @Sendable () async -> Int64? = { nil }
    ) {
        (self.client, self.url, self.gateway, self.version) = (client, url, gateway, version)
        (self.daemon, self.output, self.writers) = (daemon, output, writers)
        (self.upkeepFailed, self.devices, self.head) = (upkeepFailed, devices, head)
        writers.add(output)
    }

    package func cursor(in epoch: JournalEpoch) async throws(OutputFault) -> Int64 {
        try await reserveCentre()
        var cursor = try await position(in: epoch)
        if cursor == 0, let origin = epoch.origin { cursor = try await skipCommon(with: origin, in: epoch) }
        state.withLock { ($0.epoch, $0.reported) = (epoch, nil) }
        await report()
        await maintain()
        return cursor
    }

    /// The centre's cursor in an epoch, which then counts as the one in use.
    private func position(in epoch: JournalEpoch) async throws(OutputFault) -> Int64 {
        let answer = try await run(
            "SELECT gattherd.position($1, $2, $3)",
            [.text(epoch.text), .text(epoch.earlier.joined(separator: ",")), .text(gateway)]
        )
        guard let cursor = answer.first?.first?.flatMap({ Int64($0) }) else { throw Self.strange(url) }
        guard Self.numbers.contains(cursor) else { throw Self.impossible(cursor, url) }
        return cursor
    }

    /// Moves the cursor of a new epoch over the entries that the centre has in the epoch of the copied file.
    ///
    /// - Returns: The cursor.
    private func skipCommon(
        with origin: JournalEpoch.Origin,
        in epoch: JournalEpoch
    ) async throws(OutputFault) -> Int64 {
        let common = min(try await position(in: JournalEpoch(origin.epoch)), origin.through)
        if common > 0 {
            let reason = "none is lost: the centre has these entries in the epoch \(origin.epoch)"
            try await skip(JournalGap(after: 0, through: common, reason: reason), in: epoch)
        }
        return try await position(in: epoch)
    }

    package func write(_ entries: [JournalEntry], after: Int64, through: Int64) async throws(OutputFault) {
        let epoch = try knownEpoch()
        if let conflict = state.withLock(\.conflict) { throw Self.fault(conflict, url) }
        guard !entries.isEmpty else {
            return try await skip(JournalGap(after: after, through: through, reason: Self.refusal), in: epoch)
        }
        let batch = BatchParameters(entries)
        let (hasCorrections, devices) = (batch.hasCorrections, batch.devices)
        let (time, errors) = (WallClock.microseconds, state.withLock(\.errors))
        let newest = max(await head() ?? through, through)
        let answer = try await run(
            Self.append,
            [.text(epoch.text), .integer(after), .integer(through)] + batch.parameters()
                + [.text(version), .integer(newest), .integer(time), .integer(errors)]
        )
        guard answer.first?.first?.flatMap({ Int64($0) }) != nil else { throw Self.strange(url) }
        if hasCorrections { state.withLock { $0.requireCorrections() } }
        await applyCorrections(epoch, for: Self.correctionTime)
        await reportIfDue(after: knows(devices) ? Self.reportPause : Self.newDevicePause)
        await maintain()
    }

    package func record(_ gap: JournalGap) async throws(OutputFault) {
        try await skip(gap, in: knownEpoch())
    }

    private func skip(_ gap: JournalGap, in epoch: JournalEpoch) async throws(OutputFault) {
        _ = try await run(
            "SELECT gattherd.skip($1, $2, $3, $4)",
            [.text(epoch.text), .integer(gap.after), .integer(gap.through), .text(gap.reason)]
        )
    }

    /// True if the centre has the records of these devices.
    private func knows(_ devices: Set<String>) -> Bool {
        let reported = state.withLock(\.reported) ?? []
        return devices.isSubset(of: Set(reported.map(\.device)))
    }

    /// Reports unless the last report is younger than `pause`.
    package func reportIfDue(after pause: Duration) async {
        let now = SuspendingClock.now
        let isDue = state.withLock { state in state.reportedAt.map { $0 + pause <= now } ?? true }
        if isDue { await report() }
    }

    /// Reports that the gateway lives, and its devices if they have changed.
    ///
    /// No other call depends on it, so a failure is retried by the next call.
    package func report() async {
        state.withLock { state in
            state.reportedAt = .now
            // A standby that was promoted meanwhile may lack the last steps of corrections.
            state.requireCorrections()
        }
        let (seen, head) = (await devices(), await head())
        let records = seen?.map(\.record)
        let isNew = state.withLock { $0.reported != records }
        let fixed: [PostgresParameter] = [
            .text(version), .integer(head.flatMap { $0 < 0 ? nil : $0 }), .integer(WallClock.microseconds),
            .integer(state.withLock(\.errors)),
        ]
        let arrays = isNew ? seen.map { DeviceParameters($0).parameters } : nil
        let parameters = fixed + (arrays ?? DeviceParameters.unchanged)
        let answer = try? await client.run(Self.reportStatement, parameters, within: Self.reportLimit)
        if answer != nil, let records { state.withLock { $0.reported = records } }
        if let conflict = try? await daemon.attend(client, within: Self.reportLimit) {
            state.withLock { $0.conflict = conflict }
        }
    }

    /// Attends, and fails if another output of this process delivers to the same centre.
    private func reserveCentre() async throws(OutputFault) {
        defer { writers.recordAttempt(of: output) }
        try await attend()
        guard writers.areSeveral, let centre = try await centre() else { return }
        guard let other = await writers.reserve("\(centre) \(gateway)", for: output) else { return }
        throw OutputFault(
            .misconfigured,
            """
            \(url): the output '\(other)' delivers to this database already, or to one with the same system identifier, \
            such as its former primary; remove one, or make a second centre by pg_dump
            """
        )
    }

    /// The identity of the database, which replicas share, also promoted ones; `nil` if the server does not give it to
    /// this role.
    private func centre() async throws(OutputFault) -> String? {
        do throws(PostgresError) {
            return try await client.run(Self.identity, within: Self.reportLimit).first?.first ?? nil
        } catch {
            if error.sqlState != nil { return nil }
            throw fault(error)
        }
    }

    /// Starts the delivery, unless another daemon, which was there before, delivers as the same gateway.
    private func attend() async throws(OutputFault) {
        let conflict: String?
        do throws(PostgresError) {
            conflict = try await daemon.attend(client, within: Self.reportLimit)
        } catch {
            throw fault(error)
        }
        state.withLock { $0.conflict = conflict }
        if let conflict { throw Self.fault(conflict, url) }
    }

    /// The fault while another daemon delivers as the same gateway; the pauses between checks for its end are short.
    private static func fault(_ conflict: String, _ url: PostgresURL) -> OutputFault {
        OutputFault(.misconfigured, "\(url): \(conflict)", retryWithin: conflictPause)
    }

    package func close() async {
        client.close()
    }

    private func knownEpoch() throws(OutputFault) -> JournalEpoch {
        guard let epoch = state.withLock(\.epoch) else {
            throw OutputFault(.unavailable, "the cursor at the centre is not known yet")
        }
        return epoch
    }

    private func run(
        _ sql: String,
        _ parameters: [PostgresParameter]
    ) async throws(OutputFault) -> [[String?]] {
        do throws(PostgresError) {
            return try await client.run(sql, parameters)
        } catch {
            throw fault(error)
        }
    }

    private func fault(_ error: PostgresError) -> OutputFault {
        state.withLock { $0.errors += 1 }
        return OutputFault(error, at: url)
    }

    /// Continues a correction of many rows while there are no new entries.
    package func continueCorrections() async {
        guard let epoch = state.withLock(\.epoch) else { return }
        await applyCorrections(epoch, for: Self.correctionLimit)
    }

    /// Applies corrections step by step, each a short transaction.
    ///
    /// The entries are committed, so a failure here does not repeat them; the next call continues.
    private func applyCorrections(_ epoch: JournalEpoch, for time: Duration) async {
        let end = SuspendingClock.now + time
        while state.withLock(\.hasPendingCorrections), SuspendingClock.now < end {
            let requests = state.withLock(\.correctionRequests)
            let answer = await step(
                .correction,
                "SELECT gattherd.correct($1)",
                [.text(epoch.text)],
                within: Self.correctionLimit
            )
            guard let answer else { return }
            if answer == "f" { state.withLock { $0.completeCorrections(of: requests) } }
        }
    }

    /// Lets the centre make partitions ahead and apply its retention, step by step; one gateway does so for all.
    private func maintain() async {
        let start = SuspendingClock.now
        let isDue = state.withLock { state in
            state.maintainedAt.map { start >= $0 + Self.maintenancePause } ?? true
        }
        guard isDue else { return }
        repeat {
            let answer = await step(.retention, "SELECT gattherd.maintain()", within: .seconds(5))
            guard answer == "t" else {
                state.withLock { $0.maintainedAt = start }
                return
            }
        } while SuspendingClock.now < start + Self.maintenanceLimit
    }

    /// Performs a step of a task, and returns the answer; `nil` after a failure, which is counted and reported.
    ///
    /// A centre that is away is the fault of the delivery.
    private func step(
        _ task: CentreUpkeep,
        _ sql: String,
        _ parameters: [PostgresParameter] = [],
        within limit: Duration
    ) async -> String? {
        do throws(PostgresError) {
            return try await client.run(sql, parameters, within: limit).first?.first ?? nil
        } catch {
            let detail = fault(error).detail
            guard error.sqlState != nil || error.kind == .cancelled, !Task.isCancelled else { return nil }
            let isDue = state.withLock { $0.upkeepReports.isDue(task, detail, at: .now) }
            if isDue { upkeepFailed(task, detail) }
            return nil
        }
    }

    /// The fault of a cursor that was changed by hand, from which no batch could continue.
    private static func impossible(_ cursor: Int64, _ url: PostgresURL) -> OutputFault {
        OutputFault(
            .misconfigured,
            "\(url): the cursor of this gateway is \(cursor), which no entry has; correct it in gattherd.journal"
        )
    }

    private static func strange(_ url: PostgresURL) -> OutputFault {
        OutputFault(
            .misconfigured,
            "\(url): the answer is none of gattherd's; run at the centre: gattherd fleet upgrade"
        )
    }
}
