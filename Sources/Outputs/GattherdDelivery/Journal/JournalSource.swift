import GattherdLog
import GattherdMachines
import GattherdModel

/// The journal as the delivery reads it: moves the cursor, and selects readings by the policies of their streams.
///
/// On the loop's thread only. The methods return the events of the ``DeliveryMachine`` that answer its effects.
final class JournalSource {
    private let journal: any JournalConsumer
    private let context: DeliveryContext
    private var filter = DeliveryFilter()
    /// True if a stream's policy suppresses readings.
    private var isSelective: Bool
    var rules: PublishingRules {
        didSet { isSelective = !rules.isEverything }
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
        return .fetched(readings, through: batch.through, skipping: suppressed(readings))
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

    /// Forgets the published values of a removed device.
    func remove(_ device: String) {
        filter.forget(device)
    }

    private func failed(_ operation: DeliveryMachine.JournalOperation, _ fault: StoreFault) -> DeliveryMachine.Event {
        context.logger.journalFailed(operation, fault)
        return .journalFailed(operation)
    }

    /// Returns the sequence numbers that the policies suppress.
    private func suppressed(_ batch: [JournalReading]) -> Set<Int64> {
        guard isSelective else { return [] }
        var suppressed: Set<Int64> = []
        for reading in batch {
            let policy = rules[reading.device, reading.stream.stream].policy
            if !policy.isEverything, !filter.passes(reading, under: policy) { suppressed.insert(reading.seq) }
        }
        context.counters.suppressed.add(UInt64(suppressed.count))
        return suppressed
    }
}
