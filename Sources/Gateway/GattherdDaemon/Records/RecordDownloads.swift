import GattherdSync

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
