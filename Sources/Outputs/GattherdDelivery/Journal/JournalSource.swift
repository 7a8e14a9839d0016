import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdSync

/// The journal as the delivery reads it: moves the cursor, and selects readings by the policies of their streams.
///
/// On the loop's thread only. The methods return the events of the ``DeliveryMachine`` that answer its effects.
final class JournalSource {
    private let journal: any JournalConsumer
    private let context: DeliveryContext
    private var filter = DeliveryFilter()
    /// True once delayed readings no longer wait for the end of their interval.
    private var isStopping = false
    /// True if a rule suppresses or gathers readings.
    private var isSelective: Bool
    var rules: PublishingRules {
        didSet {
            isSelective = !rules.isEverything
            // Readings that were published without a policy are not known.
            if rules != oldValue { filter.forgetValues() }
        }
    }

    init(_ journal: any JournalConsumer, _ context: DeliveryContext) {
        self.journal = journal
        self.context = context
        rules = context.settings.publishing
        isSelective = !rules.isEverything
    }

    /// The newest committed `seq` and all that follow; negative while the journal is closed.
    var heads: AsyncStream<Int64> { journal.heads() }

    /// Loads the cursor.
    func load() async -> DeliveryMachine.Event {
        do throws(StoreFault) {
            return .cursorLoaded(try await journal.acknowledged())
        } catch {
            return failed(.load, error)
        }
    }

    /// Fetches readings from memory; `nil` if the file must be read.
    func recent(after seq: Int64, limit: Int) -> DeliveryMachine.Event? {
        guard let batch = journal.recent(after: seq, limit: limit) else { return nil }
        return fetched(batch)
    }

    /// Fetches readings from the file.
    func fetch(after seq: Int64, limit: Int) async -> DeliveryMachine.Event {
        do throws(StoreFault) {
            let batch = try await journal.entries(after: seq, limit: limit)
            return fetched(batch)
        } catch {
            return failed(.fetch, error)
        }
    }

    private func fetched(_ batch: JournalBatch) -> DeliveryMachine.Event {
        let readings = batch.readings
        if let gap = batch.missing { context.logger.missing(gap) }
        return .fetched(readings, through: batch.through, selection(of: readings))
    }

    /// Writes the cursor.
    func save(_ seq: Int64) async -> DeliveryMachine.Event {
        do throws(StoreFault) {
            try await journal.acknowledge(through: seq)
            return .saved(seq)
        } catch {
            return failed(.save, error)
        }
    }

    /// Admits the next reading of the stream unconditionally, because this one was skipped.
    func didSkip(_ reading: JournalReading) {
        if isSelective { filter.notPublished(reading) }
    }

    /// Admits the next reading of each stream unconditionally, because the broker may have lost its retained messages.
    func didConnect() {
        filter.forgetValues()
    }

    /// Removes the published values of a removed device.
    func remove(_ device: String) {
        filter.forget(device)
    }

    private func failed(_ operation: DeliveryMachine.JournalOperation, _ fault: StoreFault) -> DeliveryMachine.Event {
        context.logger.journalFailed(operation, fault)
        return .journalFailed(operation)
    }

    /// Decides about readings by the rules of their streams.
    private func selection(of readings: [JournalReading]) -> DeliverySelection {
        var selection = DeliverySelection()
        guard isSelective || context.settings.isPublisher != nil else { return selection }
        let (wall, now) = (Timestamp(microseconds: WallClock.microseconds), context.now)
        for reading in readings {
            guard isPublished(reading) else {
                selection.skipped.insert(reading.seq)
                continue
            }
            guard isSelective else { continue }
            let rule = rules[reading.device, reading.stream.stream]
            if let batch = rule.batch { selection.gathered[reading.seq] = batch }
            guard !rule.policy.isEverything else { continue }
            filter.select(reading, under: rule.policy, into: &selection, wall: wall, at: now)
        }
        context.counters.suppressed.add(UInt64(selection.skipped.count + selection.delayed.count))
        return selection
    }
}

extension JournalSource {
    /// False if another gateway publishes the device, as only devices that advertise have several receivers.
    private func isPublished(_ reading: JournalReading) -> Bool {
        guard reading.source == .advert, let isPublisher = context.settings.isPublisher else { return true }
        return isPublisher(reading.device, reading.time)
    }
}

/// Delayed readings.
extension JournalSource {
    /// The time at which the next delayed reading is due.
    var nextRelease: Duration? { filter.nextRelease.map { isStopping ? .zero : $0 } }

    /// Returns the event that publishes the delayed readings that are due.
    func release() -> DeliveryMachine.Event {
        isStopping ? releaseAll() : released(filter.release(at: context.now))
    }

    /// Returns the event that publishes all delayed readings.
    func releaseAll() -> DeliveryMachine.Event { released(filter.releaseAll()) }

    /// Makes delayed readings due as soon as there is no newer one to be fetched.
    func stop() { isStopping = true }

    private func released(_ seqs: [Int64]) -> DeliveryMachine.Event {
        context.counters.delayed.add(UInt64(seqs.count))
        return .released(seqs)
    }
}
