/// A file of the dashboard, embedded in the program.
package struct DashboardFile: Sendable {
    /// The path without the leading slash; the page itself has the empty path.
    package let path: String
    /// The media type.
    package let type: String
    package let bytes: [UInt8]

    /// All files of the dashboard.
    package static let all = [
        DashboardFile(path: "", type: "text/html; charset=utf-8", bytes: PackageResources.index_html),
        DashboardFile(path: "icon.svg", type: "image/svg+xml", bytes: PackageResources.icon_svg),
        DashboardFile(path: "style.css", type: "text/css; charset=utf-8", bytes: PackageResources.style_css),
        DashboardFile(path: "pages.css", type: "text/css; charset=utf-8", bytes: PackageResources.pages_css),
        script("add", PackageResources.add_js),
        script("api", PackageResources.api_js),
        script("app", PackageResources.app_js),
        script("axes", PackageResources.axes_js),
        script("cards", PackageResources.cards_js),
        script("chart", PackageResources.chart_js),
        script("checks", PackageResources.checks_js),
        script("configuration", PackageResources.configuration_js),
        script("controls", PackageResources.controls_js),
        script("device", PackageResources.device_js),
        script("devices", PackageResources.devices_js),
        script("diff", PackageResources.diff_js),
        script("dom", PackageResources.dom_js),
        script("downloads", PackageResources.downloads_js),
        script("events", PackageResources.events_js),
        script("export", PackageResources.export_js),
        script("gateway", PackageResources.gateway_js),
        script("history", PackageResources.history_js),
        script("label", PackageResources.label_js),
        script("list", PackageResources.list_js),
        script("log", PackageResources.log_js),
        script("model", PackageResources.model_js),
        script("newfile", PackageResources.newfile_js),
        script("order", PackageResources.order_js),
        script("records", PackageResources.records_js),
        script("router", PackageResources.router_js),
        script("series", PackageResources.series_js),
        script("sparkline", PackageResources.sparkline_js),
        script("token", PackageResources.token_js),
        script("why", PackageResources.why_js),
        script("words", PackageResources.words_js),
    ]

    private static func script(_ name: String, _ bytes: [UInt8]) -> DashboardFile {
        DashboardFile(path: name + ".js", type: "text/javascript; charset=utf-8", bytes: bytes)
    }
}
