/// The section `mqtt.home_assistant.statistics`.
package struct StatisticsSettings: Hashable, Sendable {
    package var url: Located<ServerURL>
    /// The file with the access token in its first line.
    package var tokenFile: Located<String>
    /// The files for TLS, in PEM form.
    package var ca: Located<String>?
    package var certificate: Located<String>?
    package var key: Located<String>?

    package init(url: Located<ServerURL>, tokenFile: Located<String>) {
        (self.url, self.tokenFile) = (url, tokenFile)
    }

    /// The token file, and the files for TLS if it is used.
    package var files: [NamedFile] {
        let tls = url.value.usesTLS ? NamedFile.tls(ca: ca, certificate: certificate, key: key) : []
        return [NamedFile(tokenFile, .secret("token", isReadAgain: true))] + tls
    }
}
