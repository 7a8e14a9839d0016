import GattherdLog
import GattherdMQTT
import GattherdMachines
import GattherdModel
import GattherdSync

/// Carries out the effects of a ``DeliveryMachine``: one journal, and one broker session at a time.
///
/// On the loop's thread only.
final class DeliveryRunner {
    /// Work that waits for the journal or the network and leaves the loop free meanwhile.
    enum Job: Sendable {
        case dial(session: Int)
        case probe
        case load
        case fetch(after: Int64, limit: Int)
        case save(Int64)
    }

    /// The number of waiting readings from which the broker limits the rate.
    private static let largeBacklog = 1000

    private let context: DeliveryContext
    private let board: DeliveryBoard
    private let requests: RequestService
    private let journal: JournalSource
    private let dialler: BrokerDialler
    private let admission: TopicAdmission
    private let messages: MessagePublisher
    private let readings: ReadingPublisher
    private let repair: RetainedRepair
    private let jobs = JobQueue<Job>()
    private let timer: DeadlineTimer
    /// The timer of delayed readings.
    private let releaseTimer: DeadlineTimer
    private var machine: DeliveryMachine
    private var events: [DeliveryMachine.Event] = []
    private var isStepping = false
    private var session: BrokerSession?

    init(
        _ context: DeliveryContext,
        _ board: DeliveryBoard,
        _ requests: RequestService,
        _ readings: any JournalConsumer
    ) {
        self.context = context
        self.board = board
        self.requests = requests
        journal = JournalSource(readings, context)
        dialler = BrokerDialler(context)
        admission = TopicAdmission(context, board)
        messages = MessagePublisher(context, admission, board)
        self.readings = ReadingPublisher(context, admission)
        repair = RetainedRepair(context, admission, self.readings)
        timer = DeadlineTimer(context.time)
        releaseTimer = DeadlineTimer(context.time)
        machine = DeliveryMachine(options: context.settings.options, seed: .random(in: .min ... .max))
        repair.isAwaited = { [weak self] in self?.machine.awaits($0) ?? false }
    }

    /// Passes an event to the machine and performs its effects; events caused by them follow.
    func step(_ event: DeliveryMachine.Event) {
        events.append(event)
        guard !isStepping else { return }
        isStepping = true
        while !events.isEmpty {
            for effect in machine.handle(events.removeFirst(), at: context.now) { perform(effect) }
        }
        isStepping = false
        session?.watch()
        timer.set(machine.deadline) { [weak self] in self?.step(.tick) }
        releaseTimer.set(machine.hasUnfetched ? nil : journal.nextRelease) { [weak self] in self?.release() }
        context.logger.reportDue()
        board.show(machine, context.logger.lastFault, at: context.now)
    }

    private func perform(_ effect: DeliveryMachine.Effect) {
        switch effect {
        case .loadCursor: jobs.append(.load)
        case .fetch(let after, let limit): fetch(after: after, limit: limit)
        case .save(let seq): jobs.append(.save(seq))
        case .connect(let session): jobs.append(.dial(session: session))
        case .probe: jobs.append(.probe)
        case .open: messages.publishAllStates()
        case .publish(let number, let batch, let again): publish(batch, again: again, session: number)
        case .publishOffline: messages.publishOffline()
        case .close(let number): close(number)
        case .report(let report): handle(report)
        case .finish:
            context.logger.reportDue(isLast: true)
            messages.finish()
            jobs.finish()
        }
    }

    private func release() {
        step(journal.release())
    }

    private func publish(_ batch: [DeliveryMessage], again: Int, session number: Int) {
        guard let session, session.number == number else { return }
        context.counters.published.add(UInt64(batch.reduce(0) { $0 + $1.count }))
        context.counters.republished.add(UInt64(again))
        let failures = readings.publish(batch, to: session)
        if context.settings.publishesFacts { recordFacts(batch) }
        if !failures.isEmpty { step(.answered(session: number, failures)) }
        session.flush()
        gatherAcknowledgements(session)
    }

    /// Records the facts that devices report about themselves, for their descriptions.
    private func recordFacts(_ batch: [DeliveryMessage]) {
        for reading in batch.lazy.flatMap(\.readings) where DeviceFacts.contains(reading.stream) {
            if !readings.isOfRemoved(reading) { messages.record(reading) }
        }
    }

    private func gatherAcknowledgements(_ session: BrokerSession) {
        session.gatherAcknowledgements(
            isCatchingUp: machine.backlog >= Self.largeBacklog,
            pause: machine.pacePause(at: context.now)
        )
    }

    private func handle(_ report: DeliveryMachine.Report) {
        switch report {
        case .unacknowledged(let reading): session?.sender.recordOmission(of: reading)
        case .skipped(let reading, let detail):
            context.counters.refused.add()
            journal.didSkip(reading)
            let topic = context.topics.reading(reading.device, reading.stream.stream)
            if !admission.isSetAside(topic) { context.logger.skipped(topic, detail) }
        case .disconnected:
            context.counters.failures.add()
            context.logger.log(report)
        default: context.logger.log(report)
        }
    }
}

/// Follows the journal, runs the jobs and applies changes of the settings.
extension DeliveryRunner {
    /// Follows the journal's head.
    ///
    /// A closed journal has no head; the first head marks the backlog of earlier runs.
    func followHead() async {
        for await seq in journal.heads where seq >= 0 { step(.headMoved(seq)) }
    }

    /// Dequeues the next job; `nil` after the end of delivery.
    func nextJob() async -> Job? {
        await jobs.next()
    }

    func run(_ job: Job) async {
        switch job {
        case .dial(let session): await dial(session)
        case .probe: if await dialler.isBrokerDown() { step(.brokerWasDown) }
        case .load: step(await journal.load())
        case .fetch(let after, let limit): step(await journal.fetch(after: after, limit: limit))
        case .save(let seq): step(await journal.save(seq))
        }
    }

    /// Fetches from memory if possible; the file serves the backlog of earlier runs.
    private func fetch(after seq: Int64, limit: Int) {
        guard let event = journal.recent(after: seq, limit: limit) else {
            return jobs.append(.fetch(after: seq, limit: limit))
        }
        step(event)
    }

    func apply(_ changes: DeliveryChanges) {
        if let addresses = changes.enrolled { readings.enrolled = addresses }
        messages.apply(changes).forEach(removed)
        messages.publishQueued()
    }

    /// Applies new publishing rules and publishes all descriptions again, as they depend on the rules.
    func apply(_ rules: PublishingRules, areDescriptionsNew: Bool) {
        guard areDescriptionsNew || readings.rules != rules else { return }
        // No delayed reading may follow readings under the new rules.
        step(journal.releaseAll())
        readings.rules = rules
        journal.rules = rules
        context.publishing.withLock { $0 = rules }
        messages.describeAll()
    }

    /// Publishes the backlog and the delayed readings for at most `drain`, then ends.
    func stop(drain: Duration) {
        if drain > .zero { journal.stop() }
        step(.stop(drain: drain))
    }

    func post(_ response: MQTTResponse) {
        messages.post(response)
    }

    private func removed(_ device: String) {
        journal.remove(device)
        readings.remove(device, through: machine.head ?? 0, after: machine.cursor ?? 0)
        step(.dismissed(device: device))
    }
}

/// Begins and ends the session with the broker.
extension DeliveryRunner {
    private func dial(_ number: Int) async {
        do throws(BrokerFault) {
            let dialled = try await dialler.dial()
            // After a cancellation a late socket closes itself.
            guard let dialled, machine.isConnecting(number) else { return }
            if dialler.wasBrokerDown(before: dialled) { step(.brokerWasDown) }
            let connection = try dialler.connection(dialled, session: number)
            let session = BrokerSession(number, connection, context, admission) { [weak self] event in
                self?.handle(event, of: number)
            }
            self.session = session
            session.start()
        } catch {
            step(.failed(session: number, error))
        }
    }

    private func handle(_ event: BrokerSession.Event, of number: Int) {
        guard let session, session.number == number else { return }
        switch event {
        case .connected(let limits): connected(session, limits)
        case .refused(let reason, let text):
            if reason.forbidsRetaining { dialler.isWillRetained = false }
            step(.failed(session: number, reason.refusal(text)))
        case .answered(let outcomes):
            context.counters.acknowledged.add(UInt64(outcomes.count(where: \.isAcknowledgement)))
            step(.answered(session: number, outcomes))
            gatherAcknowledgements(session)
        case .opened: step(.opened(session: number))
        case .offlinePublished: step(.offlinePublished(session: number))
        case .cautionEnded: endCaution(session)
        case .refusedMessage(let content, let reason): messages.refused(content, reason)
        case .subscribed(let state, let filter, let reason): messages.subscribed(state, to: filter, reason)
        case .message(let message): receive(message, in: number)
        case .ready: messages.publishQueued()
        case .failed(let fault): step(.failed(session: number, fault))
        }
        repair.handle(event, in: session)
    }

    private func connected(_ session: BrokerSession, _ limits: BrokerLimits) {
        context.counters.connects.add()
        dialler.isWillRetained = limits.canRetain
        dialler.didConnect()
        journal.didConnect()
        readings.startSession()
        admission.startSession()
        messages.startSession(session)
        armSearchTimers(session)
        let maximum = admission.isCautious ? 1 : limits.receiveMaximum
        step(.connected(session: session.number, receiveMaximum: maximum))
    }

    /// Bounds the time for which packets are sent one at a time, and schedules the deferred topics.
    private func armSearchTimers(_ session: BrokerSession) {
        if let end = admission.cautionEnd {
            context.loop.schedule(after: end - context.now) { [weak self, weak session] in
                guard let self, let session, session === self.session, admission.endCaution() else { return }
                endCaution(session)
            }
        }
        if let end = admission.deferralEnd {
            context.loop.schedule(after: end - context.now) { [weak self, weak session] in
                if let self, let session, session === self.session { messages.publishQueued() }
            }
        }
    }

    private func endCaution(_ session: BrokerSession) {
        step(.windowChanged(session: session.number, receiveMaximum: session.receiveMaximum))
        messages.publishQueued()
    }

    private func receive(_ message: BrokerMessage, in number: Int) {
        if let lost = dialler.session(ofLastWill: message) { step(.lastWillFound(session: number, of: lost)) }
        guard context.topics.isReasonable(message.topic) else { return context.counters.messagesRefused.add() }
        if let request = context.topics.request(message.topic) {
            if let response = requests.receive(message, request) { messages.post(response) }
        } else if let device = messages.receive(message) {
            removed(device)
        }
    }

    private func close(_ number: Int) {
        guard let session, session.number == number else { return }
        if !session.isConnected { dialler.useNextAddress() }
        readings.endSession(unansweredArray: session.sender.unansweredArray)
        let unanswered = session.close()
        self.session = nil
        repair.endSession(unanswered: session.sender.unansweredReadings)
        messages.endSession(unanswered: unanswered)
    }
}
