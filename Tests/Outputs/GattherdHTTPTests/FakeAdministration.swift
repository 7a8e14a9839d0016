import GattherdHTTP
import GattherdSync

/// An administration that records requests.
final class FakeAdministration: AdministrationBackend {
    private let received = Locked<[String]>([])
    private let fault = Locked<BackendError?>(nil)

    /// The requests, as text.
    var requests: [String] { received.withLock { $0 } }

    /// Makes all requests fail.
    func fail(with error: BackendError) {
        fault.withLock { $0 = error }
    }

    private func answer(_ request: String) -> Result<[UInt8], BackendError> {
        received.withLock { $0.append(request) }
        if let fault = fault.withLock({ $0 }) { return .failure(fault) }
        return .success(Array("{}".utf8))
    }

    func peripherals() async -> [UInt8] { (try? answer("peripherals").get()) ?? [] }

    func add(_ device: NewDevice) async -> Result<[UInt8], BackendError> {
        let texts = [device.title, device.area, device.key].map { $0 ?? "-" }.joined(separator: " ")
        let preview = device.isPreview ? " preview" : ""
        return answer("add \(device.address) \(device.name) \(device.profiles) \(texts)\(preview)")
    }

    func label(_ device: String, _ label: NewLabel) async -> Result<[UInt8], BackendError> {
        let texts = [label.title, label.area, label.note].map { $0 ?? "-" }.joined(separator: " ")
        return answer("label \(device) \(texts)")
    }

    func configurationFiles() async -> [UInt8] { (try? answer("files").get()) ?? [] }

    func configurationFile(_ name: String) async -> Result<[UInt8], BackendError> { answer("file \(name)") }

    func check(_ draft: ConfigurationDraft) async -> Result<[UInt8], BackendError> {
        answer("check \(draft.file) \(draft.text.utf8.count)")
    }

    func apply(_ draft: ConfigurationDraft) async -> Result<[UInt8], BackendError> {
        answer("apply \(draft.file) \(draft.text.utf8.count) \(draft.version ?? "-")")
    }

    func log(_ query: LogQuery) async -> [UInt8] {
        (try? answer("log \(query.level) \(query.device ?? "-") \(query.limit)").get()) ?? []
    }

    func explanation(of device: String) async -> Result<[UInt8], BackendError> { answer("why \(device)") }

    func restart() async -> Result<[UInt8], BackendError> { answer("restart") }

    func doctor() async -> Result<[UInt8], BackendError> { answer("doctor") }
}
