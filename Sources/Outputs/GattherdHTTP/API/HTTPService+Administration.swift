import GattherdModel

/// Requests that change the configuration or show more of the gateway than its values; all need the token.
extension HTTPService {
    func answer(_ request: HTTPRequest, _ route: Route.Administration) async -> HTTPResponse {
        let backend = backend.administration
        do throws(BackendError) {
            switch route {
            case .peripherals: return .json(await backend.peripherals())
            case .newDevice: return try await add(request)
            case .label(let device):
                let label = try NewLabel(try body(request))
                return .json(try await backend.label(device, label).get())
            case .explanation(let device): return .json(try await backend.explanation(of: device).get())
            case .configurationFiles: return .json(await backend.configurationFiles())
            case .configurationFile: return try await file(request)
            case .configurationCheck: return .json(try await backend.check(try draft(request)).get())
            case .restart: return .json(try await backend.restart().get(), status: 202)
            case .log: return .json(await backend.log(try LogQuery(request)))
            case .doctor: return .json(try await backend.doctor().get())
            }
        } catch {
            return .error(error.status, error.detail)
        }
    }

    private func add(_ request: HTTPRequest) async throws(BackendError) -> HTTPResponse {
        let device = try NewDevice(try body(request))
        let answer = try await backend.administration.add(device).get()
        return .json(answer, status: device.isPreview ? 200 : 201)
    }

    /// Reads or replaces a file of the configuration.
    private func file(_ request: HTTPRequest) async throws(BackendError) -> HTTPResponse {
        if request.method == .post { return .json(try await backend.administration.apply(try draft(request)).get()) }
        guard let name = request.query["file"] else {
            throw BackendError(.invalid, "name the file: ?file=gattherd.yaml")
        }
        return .json(try await backend.administration.configurationFile(name).get())
    }

    private func draft(_ request: HTTPRequest) throws(BackendError) -> ConfigurationDraft {
        try ConfigurationDraft(try body(request))
    }

    private func body(_ request: HTTPRequest) throws(BackendError) -> RequestBody {
        let type = request.headers["content-type"]?.prefix { $0 != ";" }.lowercased()
        guard type == "application/json", let body = RequestBody(request.body) else {
            throw BackendError(.invalid, "send an object of JSON: Content-Type: application/json")
        }
        return body
    }
}
