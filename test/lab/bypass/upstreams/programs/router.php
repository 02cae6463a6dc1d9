<?php
// One protected API in PHP. HOW says where it takes the path from: the undecoded target, the decoded one, PATH_INFO, or
// the parameter of a query that a rewrite rule made of the path. Or that it calls the method of a controller that the path
// names, as frameworks without a table of routes do: PHP's names ignore letter case, and a dash stands for an underscore.
class V1 {
    function export() {
        return true;
    }
    function daily_report() {
        return true;
    }
    function reports($id) {
        return $id !== 'open';
    }
    function kiss($data) {
        return strtolower($data) === 'data';
    }
}

function is_action(string $path): bool {
    [$controller, $method, $arguments] = [...explode('/', trim($path, '/'), 3), '', '', ''];
    $arguments = $arguments === '' ? [] : explode('/', $arguments);
    $method = str_replace('-', '_', $method);
    if (!class_exists($controller) || !method_exists($controller, $method)) {
        return false;
    }
    $parameters = (new ReflectionMethod($controller, $method))->getNumberOfParameters();
    return count($arguments) === $parameters && (new $controller())->$method(...$arguments);
}

function path(): string {
    $target = explode('?', $_SERVER['REQUEST_URI'], 2)[0];
    switch (getenv('HOW')) {
        case 'raw':
            return $target;
        case 'path_info':
            return $_SERVER['PATH_INFO'] ?? rawurldecode($target);
        case 'query':
            parse_str('url=' . rawurldecode(ltrim($target, '/')), $query);
            return '/' . trim($query['url'], '/ ');
        case 'urldecode':
            return rtrim(urldecode(parse_url('http://api' . $_SERVER['REQUEST_URI'], PHP_URL_PATH) ?: '/'), '/');
        default:
            return rawurldecode($target);
    }
}

function is_paid(string $path): bool {
    if ($path === '/v1/reports/open' || $path === '/v1/files/public') {
        return false;
    }
    return $path === '/v1/export' || $path === '/v1/Kiss/Data' || $path === '/v1/my report' || $path === '/v1/my%20report'
        || preg_match('#^/v1/(reports/[^/]+|files/.*|teams/[^/]+/jobs/[^/]+)$#D', $path) === 1;
}

if (getenv('HOW') === 'actions' ? is_action(path()) : is_paid(path())) {
    file_put_contents(getenv('HITS'), 'x', FILE_APPEND);
}
echo 'done';
