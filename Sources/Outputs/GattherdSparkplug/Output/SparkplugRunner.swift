import GattherdLog
import GattherdMQTT
import GattherdMachines
import GattherdModel
import GattherdSync

/// Carries out the effects of a ``SparkplugMachine``: one journal, and one connection at a time.
///
/// On the loop's thread only.
final class SparkplugRunner {
    /// Work that waits for the journal, a file or the network and leaves the loop free meanwhile.
    enum Job: Sendable {
        case dial(session: Int, bdSeq: UInt8, will: SparkplugMessage)
        case load
        case fetch(after: Int64, limit: Int)
        case save(Int64)
    }

    /// The maximum number of dialling threads; a name lookup or reading the TLS files may hang.
    private static let maximumDials = 8

    private let options: SparkplugOptions
    private let time: LoopTime
    private let journal: any JournalConsumer
    private let controls: ControlWriter
    private let logger: SparkplugLogger
    private let board: SparkplugBoard
    private let sequence: BirthSequenceFile?
    private let isPublisher: SparkplugDelivery.PublisherCheck?
    private let jobs = JobQueue<Job>()
    private let timer: DeadlineTimer
    private var machine: SparkplugMachine
    private var events: [SparkplugMachine.Event] = []
    private var isStepping = false
    private var connection: SparkplugConnection?
    private var dials = 0
    /// The index of the broker's address to try first.
    private var nextAddress = 0

    init(
        _ options: SparkplugOptions,
        _ time: LoopTime,
        _ journal: any JournalConsumer,
        _ controls: ControlWriter,
        _ logger: SparkplugLogger,
        _ board: SparkplugBoard,
        isPublisher: SparkplugDelivery.PublisherCheck? = nil
    ) {
        self.isPublisher = isPublisher
        self.options = options
        self.time = time
        self.journal = journal
        self.controls = controls
        self.logger = logger
        self.board = board
        sequence = options.sequenceFile.map { BirthSequenceFile(path: $0) }
        timer = DeadlineTimer(time)
        machine = options.machine
    }

    /// Passes an event to the machine and performs its effects; events caused by them follow.
    func step(_ event: SparkplugMachine.Event) {
        events.append(event)
        guard !isStepping else { return }
        isStepping = true
        while !events.isEmpty {
            let wall = Timestamp(microseconds: WallClock.microseconds)
            for effect in machine.handle(events.removeFirst(), at: time.now, wall) { perform(effect) }
        }
        isStepping = false
        connection?.flush()
        connection?.watch()
        timer.set(machine.deadline) { [weak self] in self?.step(.tick) }
        logger.reportDue()
        board.show(machine, logger, at: time.now)
    }

    private func perform(_ effect: SparkplugMachine.Effect) {
        switch effect {
        case .load: jobs.append(.load)
        case .fetch(let after, let limit): fetch(after: after, limit: limit)
        case .save(let seq): jobs.append(.save(seq))
        case .connect(let session, let bdSeq, let will): jobs.append(.dial(session: session, bdSeq: bdSeq, will: will))
        case .publish(let number, let messages): publish(messages, session: number)
        case .ping(let number): if connection?.number == number { connection?.ping() }
        case .set(let request): set(request)
        case .close(let number, let death): close(number, death)
        case .report(let report): logger.log(report)
        case .finish:
            logger.reportDue(isLast: true)
            jobs.finish()
        }
    }

    private func publish(_ messages: [SparkplugMessage], session number: Int) {
        guard let connection, connection.number == number else { return }
        let unsent = connection.unsentCount
        for message in messages {
            guard publish(message, to: connection) else {
                let detail = "the broker does not accept the size of \(message.topic); raise its limit for packets"
                return step(.failed(session: number, BrokerFault(.session, detail)))
            }
        }
        if messages.first?.isNodeBirth == true { connection.recordBirths(connection.unsentCount - unsent) }
        connection.flush()
        if connection.isOverfull { step(.failed(session: number, .slowBroker)) }
    }

    /// Publishes a message, or a shorter one in its place if the broker does not accept it.
    ///
    /// Otherwise the sequence numbers would have a gap, for which hosts ask for a rebirth.
    ///
    /// - Returns: False if a birth is missing, without which hosts cannot decode the data.
    private func publish(_ message: SparkplugMessage, to connection: SparkplugConnection) -> Bool {
        do throws(MQTTRefusal) {
            try connection.publish(message)
            logger.counters.messages.add()
            logger.counters.historical.add(UInt64(message.payload.metrics.count(where: \.isHistorical)))
            return true
        } catch {
            logger.unpublished(message, error)
            if message.isBirth, case .tooLarge = error {
                let shorter = message.withoutTexts
                return shorter != message && publish(shorter, insteadOf: message, to: connection)
            }
            let isEmpty = !message.isData || message.payload.metrics.isEmpty
            return isEmpty || publish(message.withoutMetrics, insteadOf: message, to: connection)
        }
    }

    private func publish(
        _ shorter: SparkplugMessage,
        insteadOf message: SparkplugMessage,
        to connection: SparkplugConnection
    ) -> Bool {
        if let device = message.device {
            step(.unpublished(device: device, aliases: message.aliases(missingIn: shorter)))
        }
        return publish(shorter, to: connection)
    }

    private func set(_ request: ControlRequest) {
        guard !controls.enqueue(request) else { return }
        let topic = "\(request.device)/\(request.control)"
        logger.log(.ignored(topic: topic, "too many commands at once, or the control may not be set"))
    }

    private func close(_ number: Int, _ death: SparkplugMessage?) {
        guard let connection, connection.number == number else { return }
        connection.close(death)
        self.connection = nil
        nextAddress += 1
    }
}

/// Follows the journal and runs the jobs.
extension SparkplugRunner {
    /// Follows the journal's head; a closed journal has none.
    func followHead() async {
        for await seq in journal.heads() where seq >= 0 { step(.headMoved(seq)) }
    }

    /// Dequeues the next job; `nil` after the end of the output.
    func nextJob() async -> Job? { await jobs.next() }

    func run(_ job: Job) async {
        switch job {
        case .dial(let session, let bdSeq, let will): await dial(session, bdSeq, will)
        case .load: await load()
        case .fetch(let after, let limit): await fetchFromFile(after: after, limit: limit)
        case .save(let seq): await save(seq)
        }
    }

    private func load() async {
        let sequence = sequence
        let bdSeq = await NamedThread.result(name: "sparkplug-file") { sequence?.load() } ?? nil
        do throws(StoreFault) {
            step(.loaded(cursor: try await journal.acknowledged(), bdSeq: bdSeq))
        } catch {
            failed(.load, error)
        }
    }

    /// Fetches from memory if possible; the file serves the backlog of earlier runs.
    private func fetch(after seq: Int64, limit: Int) {
        if let batch = journal.recent(after: seq, limit: limit) {
            return step(.fetched(published(batch), after: seq))
        }
        jobs.append(.fetch(after: seq, limit: limit))
    }

    private func fetchFromFile(after seq: Int64, limit: Int) async {
        do throws(StoreFault) {
            step(.fetched(published(try await journal.entries(after: seq, limit: limit)), after: seq))
        } catch {
            failed(.fetch, error)
        }
    }

    /// Removes the entries that another gateway publishes.
    private func published(_ batch: JournalBatch) -> JournalBatch {
        guard let isPublisher else { return batch }
        var batch = batch
        batch.entries.removeAll { entry in
            guard let reading = entry.reading, reading.source == .advert else { return false }
            return !isPublisher(reading.device, reading.time)
        }
        return batch
    }

    private func save(_ seq: Int64) async {
        do throws(StoreFault) {
            try await journal.acknowledge(through: seq)
            step(.saved(seq))
        } catch {
            failed(.save, error)
        }
    }

    private func failed(_ operation: SparkplugMachine.Operation, _ fault: StoreFault) {
        logger.journalFailed(operation, fault)
        step(.journalFailed(operation))
    }
}

/// Handles the connection to the broker.
extension SparkplugRunner {
    private func dial(_ number: Int, _ bdSeq: UInt8, _ will: SparkplugMessage) async {
        do throws(BrokerFault) {
            let dialled = try await dialled(bdSeq)
            // After a cancellation a late socket closes itself.
            guard let dialled, machine.isConnecting(number) else { return }
            let mqtt = try connect(dialled, will)
            let connection = SparkplugConnection(number, mqtt, options, time) { [weak self] event in
                self?.handle(event, of: number)
            }
            self.connection = connection
            connection.start()
        } catch {
            step(.failed(session: number, error))
        }
    }

    /// Saves bdSeq, resolves the host and connects on a thread of its own, because all three block; `nil` if cancelled.
    private func dialled(_ bdSeq: UInt8) async throws(BrokerFault) -> DialledConnection? {
        guard dials < Self.maximumDials else { throw .unreachable(options, "earlier attempts are still running") }
        dials += 1
        defer { dials -= 1 }
        let (endpoint, sequence, first) = (options.endpoint, sequence, nextAddress)
        let result = await NamedThread.result(name: "sparkplug-dial") {
            let isSaved = sequence?.save(bdSeq) ?? true
            return (isSaved, Result { () throws(DialError) in try endpoint.dial(first: first) })
        }
        guard let (isSaved, dialled) = result else { return nil }
        if !isSaved { logger.sequenceNotSaved(options.sequenceFile ?? "") }
        do throws(DialError) { return try dialled.get() } catch { throw BrokerFault(error, options) }
    }

    private func connect(_ dialled: DialledConnection, _ will: SparkplugMessage) throws(BrokerFault) -> MQTTConnection {
        do throws(MQTTConnectionError) {
            return try MQTTConnection(dialled.socket, dialled.tls, options.mqttOptions(will: will), at: time.now)
        } catch {
            throw BrokerFault(error, dialled.tls?.explanation, isConnected: false, options)
        }
    }

    private func handle(_ event: SparkplugConnection.Event, of number: Int) {
        guard let connection, connection.number == number else { return }
        switch event {
        case .connected(let maximum): step(.connected(session: number, maximumPacket: maximum))
        case .refused(let filter): logger.refusedSubscription(filter)
        case .message(let message): step(.message(session: number, message))
        case .confirmed: step(.confirmed(session: number))
        case .failed(let fault): step(.failed(session: number, fault))
        }
    }
}
