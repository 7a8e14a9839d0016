import GattherdModel

/// The JSON API, `/api/v1`.
extension HTTPService {
    func status() async -> HTTPResponse {
        .json(StatusJSON.bytes(await backend.status()))
    }

    func devices() async -> HTTPResponse {
        let devices = DeviceSnapshot.all(await backend.status(), live.snapshot)
        return .json(JSONWriter.bytes { $0.array(devices) { $1.writeJSON(to: &$0) } })
    }

    func device(_ name: String) async -> HTTPResponse {
        let devices = DeviceSnapshot.all(await backend.status(), live.snapshot)
        guard let device = devices.first(where: { $0.status.device == name }) else {
            return refused(.noSuchDevice(name))
        }
        return .json(JSONWriter.bytes { device.writeJSON(to: &$0) })
    }

    /// Returns an event stream, or the newest events as JSON if the client accepts that.
    func events(_ request: HTTPRequest) async -> HTTPResponse {
        guard !request.wantsJSON else {
            return await records(request) { await backend.events($0) }
        }
        // libmicrohttpd would end the stream of a HEAD request with a chunk, which clients take for the next response.
        guard request.method != .head else { return HTTPResponse(200, type: HTTPResponse.eventStream, []) }
        let channel = hub.subscribe { [access] in access.refusal(of: request, for: .readers) == nil }
        guard let channel else {
            return .error(503, "too many readers of the event stream; try again")
        }
        return HTTPResponse(events: channel).with("X-Accel-Buffering", "no")
    }

    func history(_ request: HTTPRequest) async -> HTTPResponse {
        await records(request) { await backend.history($0) }
    }

    func rejects(_ request: HTTPRequest) async -> HTTPResponse {
        await records(request) { await backend.rejects($0) }
    }

    private func records(
        _ request: HTTPRequest,
        _ answer: (RecordQuery) async -> Result<[UInt8], BackendError>
    ) async -> HTTPResponse {
        do throws(BackendError) {
            return .json(try await answer(try RecordQuery(request)).get())
        } catch {
            return .error(error.status, error.detail)
        }
    }

    func connect(_ device: String) async -> HTTPResponse {
        do throws(ControlError) {
            try await backend.connect(device)
            return .done(device, "wanted", "connected")
        } catch {
            return refused(error)
        }
    }

    func disconnect(_ device: String) async -> HTTPResponse {
        do throws(ControlError) {
            try await backend.disconnect(device)
            return .done(device, "wanted", "disconnected")
        } catch {
            return refused(error)
        }
    }

    func set(_ control: String, of device: String, _ request: HTTPRequest) async -> HTTPResponse {
        let type = request.headers["content-type"]?.prefix { $0 != ";" }.lowercased()
        guard type == "application/json" else { return .error(415, "send JSON: Content-Type: application/json") }
        guard let body = RequestBody(request.body), let value = ControlValue(body["value"]) else {
            return .error(400, #"send {"value": …}: a number, true, false, text, or null"#)
        }
        let transaction = body.member("transaction")?.source
        var asked = ControlRequest(device: device, control: control, value: value, transaction: transaction)
        do throws(BackendError) {
            try body.refuseMembers(except: ["value", "epoch", "transaction"])
            asked.epoch = try body.epoch
        } catch {
            return .error(error.status, error.detail)
        }
        switch await backend.set(asked) {
        case .success(let value): return .done(device, control, value)
        case .failure(let error): return refused(error)
        }
    }

    private func refused(_ error: ControlError) -> HTTPResponse {
        let status =
            switch error {
            case .noSuchDevice, .noSuchControl, .onlyAdvertises: 404
            case .invalidValue: 422
            case .notReady, .superseded, .notOwner, .otherEpoch, .repeated: 409
            case .refused: 502
            case .timedOut: 504
            }
        return .error(status, backend.words(for: error))
    }
}

extension RequestBody {
    /// The member `epoch`, for devices with leases; `nil` without one.
    fileprivate var epoch: Int64? {
        get throws(BackendError) {
            switch self["epoch"] {
            case nil: return nil
            case .integer(let epoch)?: return epoch
            case _?: throw BackendError(.invalid, "'epoch' must be a whole number")
            }
        }
    }
}

extension HTTPResponse {
    /// Returns the response to a command that was accepted.
    fileprivate static func done(_ device: String, _ name: String, _ word: String) -> HTTPResponse {
        object(status: 202) { writer in
            writer.key("device")
            writer.string(device)
            writer.key(name)
            writer.string(word)
        }
    }

    /// Returns the response with the value that was set.
    fileprivate static func done(_ device: String, _ control: String, _ value: ControlValue) -> HTTPResponse {
        object { writer in
            writer.key("device")
            writer.string(device)
            writer.key("control")
            writer.string(control)
            writer.key("value")
            writer.value(SampleValue(value))
        }
    }
}

extension SampleValue {
    fileprivate init(_ value: ControlValue) {
        switch value {
        case .integer(let number): self = .integer(number)
        case .real(let number): self = .real(number)
        case .boolean(let flag): self = .boolean(flag)
        case .text(let text): self = .text(text)
        case .trigger: self = .null
        }
    }
}
