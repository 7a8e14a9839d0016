package import GattherdConfig
package import GattherdModel
package import GattherdOutputs

/// The output `influx`.
package enum InfluxOutput: OutputKind {
    package static let section = "influx"

    package static func read(_ section: SectionReader, _ environment: OutputEnvironment) -> InfluxConfiguration? {
        InfluxReader(environment: environment).configuration(section)
    }

    package static func make(
        _ configuration: InfluxConfiguration,
        _ context: OutputContext
    ) throws(OutputError) -> any Output {
        let read = context.readSecret
        let credentials = try configuration.credentials?.read(read)
        let settings = configuration.settings(gateway: context.gateway, credentials)
        let sink = InfluxSink(settings) {
            do throws(OutputError) { return try configuration.credentials?.read(read) } catch { return nil }
        }
        var options = BatchOptions()
        options.entries = configuration.batchEntries
        options.interval = configuration.batchInterval
        return BatchOutput(
            context,
            target: "\(configuration.url.value)",
            sink: sink,
            options: options
        )
    }

    package static func files(_ configuration: InfluxConfiguration) -> [NamedFile] {
        let secret = configuration.credentials.map { NamedFile($0.file, .secret($0.noun, isReadAgain: true)) }
        let tls = configuration.tls
        let files = NamedFile.tls(ca: tls.ca, certificate: tls.certificate, key: tls.key)
        return [secret].compactMap(\.self) + (configuration.url.value.usesTLS ? files : [])
    }

    /// A secret that is sent without encryption through a network is a warning.
    package static func findings(_ configuration: InfluxConfiguration) -> [ConfigError] {
        let url = configuration.url
        guard configuration.credentials != nil, !url.value.usesTLS, !url.value.isLoopback, let place = url.place else {
            return []
        }
        let text = "the token or password is sent to \(url.value.host) without encryption; use https:// if you can"
        return [ConfigError(.exposedSecret(text), at: place, severity: .warning)]
    }
}

extension InfluxConfiguration.Credentials {
    fileprivate var file: Located<String> {
        switch self {
        case .token(let file), .password(_, let file): file
        }
    }

    fileprivate var noun: String {
        switch self {
        case .token: "token"
        case .password: "password"
        }
    }

    /// Reads the file; blocks.
    fileprivate func read(_ read: OutputContext.SecretReader) throws(OutputError) -> InfluxCredentials {
        switch self {
        case .token: .token(try secret(read))
        case .password(let user, _): .password(user: user, try secret(read))
        }
    }

    private func secret(_ read: OutputContext.SecretReader) throws(OutputError) -> String {
        var text = try read(file.value, noun)
        if text.hasSuffix("\r") { text.removeLast() }
        guard !text.isEmpty, text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw OutputError("'\(file.value)' has no \(noun); write it into its first line")
        }
        return text
    }
}
