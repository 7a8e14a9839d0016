import GattherdBluetooth
import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdSync

/// Downloads the stored records of one stream on one link.
struct RecordDownloader: Sendable {
    private enum Input: Sendable {
        case facts(DownloadFacts, isAnswer: Bool)
        case response([UInt8])
        case tick
    }

    /// The bounds of the pause after a failed download.
    private static let pauses = Duration.seconds(60) ... .seconds(600)
    /// The maximum number of inputs that wait; the newest are kept.
    private static let mostInputs = 1024

    private let link: ServedLink
    private let download: ProfileAssignment.Download
    private let stream: ServedStream
    private let messages: StreamBinding
    private let records: RecordStream
    private let answers: ResponseAwaiter

    /// Makes the runner; `nil` if the stream is not served as records.
    init?(
        _ link: ServedLink,
        _ download: ProfileAssignment.Download,
        _ served: [ServedStream],
        _ answers: ResponseAwaiter
    ) {
        let stream = served.first { stream in
            stream.planned.profile.name == download.profile.name && stream.planned.isDownloaded(by: download.descriptor)
        }
        guard let stream, let messages = stream.messageBinding, let records = messages.records else { return nil }
        (self.link, self.download, self.stream) = (link, download, stream)
        (self.messages, self.records, self.answers) = (messages, records, answers)
    }

    /// Downloads once.
    ///
    /// - Parameter failures: The number of downloads that failed before; updated.
    /// - Returns: The time until the next download; `nil` for none.
    func run(_ failures: inout Int) async -> Duration? {
        let outcome = await downloadOnce()
        records.onFacts(nil)
        guard !Task.isCancelled else { return nil }
        report(outcome)
        failures = outcome == .complete ? 0 : failures + 1
        guard failures > 0 else { return download.descriptor.period }
        return min(Self.pauses.lowerBound * (1 << min(failures - 1, 4)), Self.pauses.upperBound)
    }

    /// Reports the end of the link.
    func close() {
        records.onFacts(nil)
        post(.close)
        if let status = records.status, status.state == .downloading { setStatus(.interrupted) }
    }

    private func downloadOnce() async -> DownloadMachine.Outcome {
        let (inbox, post) = AsyncStream.makeStream(of: Input.self, bufferingPolicy: .bufferingNewest(Self.mostInputs))
        records.setStatus(RecordStatus(state: .downloading, since: link.context.now()))
        let wantsProgress = download.descriptor.procedure.isNotifiedInBlocks
        records.onFacts { facts, isAnswer in
            if isAnswer || wantsProgress { post.yield(.facts(facts, isAnswer: isAnswer)) }
        }
        let listener = download.answering.map { answers.listen(to: $0) { post.yield(.response($0)) } }
        defer { listener.map(answers.remove) }
        self.post(.open)
        await compareClocks()
        // Without an answer the download would wait until the link ends.
        guard self.post(.drain) else { return .failed("too many values wait for history") }
        return await withTaskGroup(of: DownloadMachine.Outcome?.self) { group in
            group.addTask { await execute(inbox) }
            group.addTask {
                while (try? await Task.sleep(for: tick, clock: .loop)) != nil { post.yield(.tick) }
                return nil
            }
            let outcome = await group.next() ?? nil
            group.cancelAll()
            return outcome ?? .failed("it was cancelled")
        }
    }

    private var tick: Duration { min(.seconds(1), download.descriptor.timeout / 4) }

    // MARK: - Machine

    private func execute(_ inbox: AsyncStream<Input>) async -> DownloadMachine.Outcome {
        let now = link.context.now
        var machine = DownloadMachine(
            download.descriptor.procedure,
            isNumbered: records.rule.number != nil,
            timeout: download.descriptor.timeout,
            clock: { now().microseconds / 1_000_000 }
        )
        var isOpen = false
        for await input in inbox {
            var event = self.event(input, isOpen: &isOpen)
            while let next = event {
                event = nil
                for step in machine.handle(next, at: SuspendingClock.now - link.context.start) {
                    if case .finish(let outcome) = step { return outcome }
                    event = await perform(step)
                    if event != nil { break }
                }
            }
            if let total = machine.total { records.updateStatus { $0.total = max(total, $0.done) } }
        }
        return .failed("it was cancelled")
    }

    private func event(_ input: Input, isOpen: inout Bool) -> DownloadMachine.Event? {
        switch input {
        case .facts(let facts, let isAnswer):
            defer { isOpen = isOpen || isAnswer }
            guard isOpen else { return isAnswer ? .opened(facts) : nil }
            return isAnswer ? .drained(facts) : .progress(facts)
        case .response(let octets): return .response(octets)
        case .tick: return isOpen ? .progress(records.facts) : nil
        }
    }

    /// Performs a step; returns the event of a failure.
    private func perform(_ step: DownloadMachine.Step) async -> DownloadMachine.Event? {
        do throws(BluetoothError) {
            switch step {
            case .begin(let request, let relation): post(.begin(request, relation))
            case .write(let octets):
                let isAcknowledged = download.descriptor.isAcknowledged
                try await link.central.write(octets, to: download.control, withResponse: isAcknowledged)
            case .read:
                let octets = try await link.central.read(stream.planned.remote)
                link.intake.receive(octets, for: stream.readBinding, at: link.context.now())
            case .drain: post(.drain)
            case .complete: post(.complete)
            case .end: post(.end)
            case .finish: break
            }
            return nil
        } catch {
            return .failed(error.detail)
        }
    }

    /// Posts a message to the decoder; returns false if there was no room for it.
    @discardableResult
    private func post(_ message: RecordStream.Message) -> Bool {
        records.post(message, through: link.intake, messages, at: link.context.now())
    }

    /// Reads the device's clock, if it has one.
    private func compareClocks() async {
        let start = link.context.now()
        // A device whose clock is set dates its records by it.
        if download.descriptor.procedure.tellsTime { post(.tell(start)) }
        guard let clock = download.descriptor.clock, let remote = download.clock else { return }
        do throws(BluetoothError) {
            let octets = try await link.central.read(remote)
            let end = link.context.now()
            // The device answers about halfway between the request and its response.
            let middle = start.microseconds + (end.microseconds - start.microseconds) / 2
            guard let device = clock.reading(of: octets, at: middle) else { return }
            post(.compare(device: device, gateway: Timestamp(microseconds: middle)))
        } catch {
            link.log(.debug, "the device's clock cannot be read", [.init("error", error.detail)])
        }
    }

    // MARK: - Reports

    private func setStatus(_ state: RecordStatus.State, _ detail: String? = nil) {
        records.updateStatus { status in
            (status.state, status.detail) = (state, detail)
            status.since = link.context.now()
        }
    }

    private func report(_ outcome: DownloadMachine.Outcome) {
        let stored = records.status?.stored ?? 0
        switch outcome {
        case .complete:
            setStatus(.complete)
            if stored > 0 { record("complete", stored) }
        case .failed(let reason):
            setStatus(.failed, reason)
            link.log(.warning, "stored records could not be downloaded", [.init("error", reason)])
            record("failed", stored, reason)
        }
    }

    private func record(_ state: String, _ stored: Int, _ error: String? = nil) {
        link.context.recorder.record(
            device: link.device.name,
            kind: "records",
            [
                "stream": .text(records.key.stream), "state": .text(state), "records": .integer(Int64(stored)),
                "error": error.map { .text($0) },
            ]
        )
    }
}

extension DownloadDescriptor.Procedure {
    /// True if each payload decides about the next request.
    fileprivate var isNotifiedInBlocks: Bool {
        if case .blocks(_, _, false) = self { true } else { false }
    }

    /// True if requests contain the current time.
    fileprivate var tellsTime: Bool {
        switch self {
        case .request(let template, _), .blocks(let template, _, _): template.contains(.time(.now))
        case .accessControlPoint: false
        }
    }
}

/// Runs the downloads of one link one after the other: they may use the same characteristics.
struct RecordDownloads: Sendable {
    private let downloaders: [RecordDownloader]

    init(_ link: ServedLink, _ plan: ProfileAssignment, _ served: [ServedStream]) {
        downloaders = plan.downloads.compactMap { RecordDownloader(link, $0, served, plan.answers) }
    }

    /// Runs until cancelled.
    func run() async {
        defer { for downloader in downloaders { downloader.close() } }
        var due = Dictionary(uniqueKeysWithValues: downloaders.indices.map { ($0, SuspendingClock.now) })
        var failures = downloaders.map { _ in 0 }
        while let next = due.min(by: { ($0.value, $0.key) < ($1.value, $1.key) }) {
            let pause = next.value - .now
            if pause > .zero, (try? await Task.sleep(for: pause, clock: .loop)) == nil { return }
            due[next.key] = nil
            let wait = await downloaders[next.key].run(&failures[next.key])
            guard !Task.isCancelled else { return }
            if let wait { due[next.key] = .now + wait }
        }
        // Live records follow until the link ends.
        for await _ in AsyncStream.makeStream(of: Void.self).stream {}
    }
}
