package import GattherdHistory
import GattherdHomeAssistant
package import GattherdLog
import GattherdMachines
package import GattherdModel
import GattherdSync

/// Imports each completed hour into Home Assistant, some minutes after its end.
///
/// A new installation begins with the current hour. Hours of an outage of any length are imported later. While Home
/// Assistant refuses all entities, the last 30 days wait. An entity that it refuses while it accepts others keeps a
/// gap. Hours with values that came late, such as stored records, and all hours after a correction of times are
/// imported again together with the next hour.
package final class StatisticsService: Output {
    private struct State: Sendable {
        var status: OutputStatus
        /// True after a failure that was logged, until an import succeeds.
        var isFailing = false
        /// True after refused hours were passed over, until an import succeeds.
        var isPassingOver = false
        /// The problems of entities that were logged.
        var problems: [String] = []
        /// The end of the hours that are imported or being imported; `nil` before the first check.
        var imported: Timestamp?
        /// The end of the last import that succeeded.
        var lastEnd: Timestamp?
        /// The time of the oldest reading that came, or may have moved, after the import of its hour.
        var late: Timestamp?
    }

    /// The longest time by which a reading may be late to have its hour imported again, or refused hours wait.
    private static let longestDelay = Duration.seconds(30 * 86_400)

    /// The longest sleep: the wall clock may be set meanwhile.
    private static let longestSleep = Duration.seconds(60)
    private static let backoff = Backoff(minimum: .seconds(30), maximum: .seconds(900))

    private let importer: StatisticsImporter
    private let cursor: StatisticsCursor
    private let log: Log
    private let clock: GatewayClock
    private let state: Locked<State>
    private let isStopping = LatestValue(false)

    /// - Parameters:
    ///   - importer: The importer.
    ///   - folder: The folder for the cursor.
    ///   - log: The log for people.
    ///   - clock: The clocks.
    package init(_ importer: StatisticsImporter, folder: String, log: Log, clock: GatewayClock) {
        self.importer = importer
        cursor = StatisticsCursor(path: "\(folder)/\(StatisticsCursor.name)")
        (self.log, self.clock) = (log, clock)
        state = Locked(State(status: OutputStatus(target: importer.target)))
    }

    package var name: String { "statistics" }
    package var status: OutputStatus { state.withLock(\.status) }
    package func roundTrip() async {}
    package func stop(within limit: Duration) async { isStopping.set(true) }

    /// Records the times of stored readings; never blocks.
    func observe(_ batch: ReadingBatch) {
        guard let imported = state.withLock(\.imported) else { return }
        let limit = imported.advanced(by: .zero - Self.longestDelay)
        guard let first = batch.readings.lazy.map(\.time).filter({ $0 >= limit }).min() else { return }
        if first < imported { state.withLock { $0.late = min(first, $0.late ?? first) } }
    }

    /// Marks the last 30 days as due again, because history has corrected times; never blocks.
    ///
    /// Hours that no longer have a reading keep their old statistics: Home Assistant cannot remove them.
    func didCorrectTimes() {
        state.withLock { state in
            if let imported = state.imported { state.late = imported.advanced(by: .zero - Self.longestDelay) }
        }
    }

    package func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.followHours() }
            for await isStopping in isStopping.watch() where isStopping { break }
            isStopping.set(true)
            group.cancelAll()
        }
        state.withLock { $0.status.state = .stopped }
    }

    private func followHours() async {
        var failures = 0
        var generator = SystemRandomNumberGenerator()
        repeat {
            let outcome = await NamedThread.result(name: "home-assistant") { [self] in importNewHours() }
            guard let outcome, !isStopping.state else { return }
            if outcome == .failed {
                let pause = Self.backoff.delay(after: failures, using: &generator)
                failures += 1
                state.withLock { $0.status.nextTry = clock.now().advanced(by: pause) }
                guard (try? await Task.sleep(for: pause, clock: .loop)) != nil else { return }
            } else {
                failures = 0
                guard (try? await Task.sleep(for: Self.longestSleep, clock: .loop)) != nil else { return }
            }
        } while !isStopping.state
    }

    enum Outcome {
        case done
        case failed
    }

    /// Imports the hours that are complete and not imported yet; blocks.
    func importNewHours() -> Outcome {
        let now = clock.now()
        guard now >= clock.earliest else { return .done }
        let (current, end) = (StatisticsImporter.hourStart(now), StatisticsImporter.end(at: now))
        let saved = cursor.read()
        // A saved hour in the future was saved by a wrong clock, unless the clock is wrong now.
        guard let saved, saved.next <= current || !clock.isSynchronised() else {
            return save(StatisticsCursor.Hours(next: current, first: min(current, saved?.first ?? current)))
                ? .done : .failed
        }
        let late = state.withLock(\.late)
        let start = max(saved.first, min(saved.next, late.map { StatisticsImporter.hourStart($0) } ?? saved.next))
        if start < saved.next, !save(StatisticsCursor.Hours(next: start, first: saved.first)) { return .failed }
        let isDue = state.withLock { state in
            if state.late == late { state.late = nil }
            state.imported = max(saved.next, end)
            let isDue = start < end && state.lastEnd != end
            // The failure was one of the cursor's file.
            if !isDue, state.isFailing {
                state.isFailing = false
                (state.status.state, state.status.problem, state.status.nextTry) = (.idle, nil, nil)
            }
            return isDue
        }
        return isDue ? importHours(start..<end, first: saved.first) : .done
    }

    private func importHours(_ times: Range<Timestamp>, first: Timestamp) -> Outcome {
        state.withLock { $0.status.state = .connecting }
        do throws(HomeAssistantError) {
            var isSaved = true
            let report = try importer.run(times, isCancelled: { [isStopping] in isStopping.state }) { hour in
                isSaved = save(StatisticsCursor.Hours(next: hour, first: first)) && isSaved
            }
            guard isSaved else { return .failed }
            state.withLock { $0.lastEnd = times.upperBound }
            succeed(report)
            return .done
        } catch {
            if error.kind == .refusesAll { passOver(until: times.upperBound, first: first) }
            fail(error.description, isQuiet: error.kind == .cancelled)
            return .failed
        }
    }

    /// Passes over refused hours that have waited too long: each attempt reads all that wait.
    ///
    /// The attempt has saved the hour up to which nothing was refused; earlier ones do not wait.
    private func passOver(until end: Timestamp, first: Timestamp) {
        let limit = end.advanced(by: .zero - Self.longestDelay)
        guard let waiting = cursor.read()?.next, waiting < limit,
            save(StatisticsCursor.Hours(next: limit, first: first))
        else { return }
        let isFirst = state.withLock { state in
            defer { state.isPassingOver = true }
            return !state.isPassingOver
        }
        guard isFirst else { return }
        let advice = "to import them later, run: gattherd homeassistant statistics --since \(waiting.rfc3339)"
        let fields = [LogField("until", limit.rfc3339), LogField("advice", advice)]
        log(.warning, "hours that Home Assistant refuses are passed over after 30 days", fields)
    }

    private func save(_ hours: StatisticsCursor.Hours) -> Bool {
        do throws(FileError) {
            try cursor.write(hours)
            return true
        } catch {
            fail("the hour up to which statistics are imported cannot be saved: \(error)")
            return false
        }
    }

    private func succeed(_ report: StatisticsReport) {
        let (wasFailing, news) = state.withLock { state in
            defer { (state.isFailing, state.isPassingOver, state.problems) = (false, false, report.problems) }
            state.status.state = .idle
            (state.status.problem, state.status.nextTry) = (report.problems.first, nil)
            state.status.delivered += UInt64(report.hours)
            return (state.isFailing, report.problems.filter { !state.problems.contains($0) })
        }
        let fields = [LogField("entities", report.importedEntities.count), LogField("hours", report.hours)]
        log(wasFailing ? .notice : .debug, "statistics imported into Home Assistant", fields)
        for problem in news { log(.warning, "statistics of an entity are not imported", [LogField("advice", problem)]) }
    }

    private func fail(_ problem: String, isQuiet: Bool = false) {
        let isFirst = state.withLock { state in
            defer { state.isFailing = state.isFailing || !isQuiet }
            state.status.state = .waiting
            state.status.problem = problem
            state.status.errors += 1
            return !state.isFailing
        }
        guard isFirst, !isQuiet else { return }
        log(.warning, "statistics cannot be imported into Home Assistant", [LogField("error", problem)])
    }
}
