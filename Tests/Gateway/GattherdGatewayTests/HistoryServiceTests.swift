import Dispatch
import GattherdHTTP
import GattherdHistory
import GattherdLog
import GattherdModel
import GattherdSync
import TestKit
import Testing

@testable import GattherdGateway

/// Requests for stored rows by HTTP and MQTT.
@Suite(.timeLimit(.minutes(1))) struct HistoryServiceTests {
    private static let start = Timestamp(microseconds: 1_795_230_000_000_000)

    private let folder: TemporaryFolder
    private let service: HistoryService

    init() async throws {
        folder = try TemporaryFolder()
        let path = folder.file("history.db")
        let options = HistoryOptions(path: path, consumers: [], clock: GatewayClock { Self.start })
        let history = try await ReadingHistory.open(options, log: Log(threshold: .error) { _ in })
        try await history.close()
        service = HistoryService(path: path, maximum: 1)
    }

    @Test func `a cancelled request stops reading, and counts until then`() async throws {
        let isReading = LatestValue(false)
        let gate = DispatchSemaphore(value: 0)
        let wasStopped = LatestValue<Bool?>(nil)
        let request = Task { [service] in
            await service.read { reader in
                isReading.set(true)
                gate.wait()
                let read = Result { () throws(StoreFault) in try reader.rows(HistoryQuery()) { _ in true } }
                wasStopped.set((try? read.get()) == nil)
            }
        }
        for await hasBegun in isReading.watch() where hasBegun { break }
        request.cancel()
        let answer = await request.value
        #expect(throws: BackendError.self) { try answer.get() }
        let refused = await service.read { _ in }
        #expect(throws: BackendError(.unavailable, "too many history requests at once; try again")) {
            try refused.get()
        }
        gate.signal()
        for await isStopped in wasStopped.watch() {
            guard let isStopped else { continue }
            #expect(isStopped)
            break
        }
        while case .failure = await service.read({ _ in }) { await Task.yield() }
    }
}
