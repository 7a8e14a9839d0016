package import GattherdConfig
package import GattherdModel
package import GattherdOutputs

/// The output `influx`.
package enum InfluxOutput: OutputDefinition {
    package static let section = "influx"

    package static func read(_ section: SectionReader, _ environment: OutputEnvironment) -> InfluxSettings? {
        InfluxReader(environment: environment).settings(section)
    }

    package static func make(
        _ settings: InfluxSettings,
        _ context: OutputContext
    ) throws(OutputError) -> any Output {
        let read = context.readSecret
        let credentials = try settings.credentials?.read(read)
        let options = settings.options(gateway: context.gateway, credentials)
        let sink = InfluxSink(options) {
            do throws(OutputError) { return try settings.credentials?.read(read) } catch { return nil }
        }
        var batch = BatchOptions()
        batch.entries = settings.batchEntries
        batch.interval = settings.batchInterval
        return BatchOutput(
            context,
            target: "\(settings.url.value)",
            sink: sink,
            options: batch
        )
    }

    package static func files(_ settings: InfluxSettings) -> [NamedFile] {
        let secret = settings.credentials.map { NamedFile($0.file, .secret($0.noun, isReadAgain: true)) }
        let tls = settings.tls
        let files = NamedFile.tls(ca: tls.ca, certificate: tls.certificate, key: tls.key)
        return [secret].compactMap(\.self) + (settings.url.value.usesTLS ? files : [])
    }

    /// A secret that is sent without encryption through a network is a warning.
    package static func findings(_ settings: InfluxSettings) -> [ConfigError] {
        let url = settings.url
        guard settings.credentials != nil, url.value.isExposed, let place = url.place else { return [] }
        let text = "the token or password is sent to \(url.value.host) without encryption; use https:// if you can"
        return [ConfigError(.exposedSecret(text), at: place, severity: .warning)]
    }
}

extension InfluxSettings.Credentials {
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
